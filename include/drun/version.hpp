// The version of drun that a program is built with, for the preprocessor.
//
//   #if DRUN_VERSION >= 200  // 0.2.0 and later
//
// Until 1.0 a new minor version may change what is in these headers; a new patch version does not.
#pragma once

#define DRUN_VERSION_MAJOR 0
#define DRUN_VERSION_MINOR 1
#define DRUN_VERSION_PATCH 0

// One number to compare: 10000 * major + 100 * minor + patch.
#define DRUN_VERSION (DRUN_VERSION_MAJOR * 10000 + DRUN_VERSION_MINOR * 100 + DRUN_VERSION_PATCH)
#define DRUN_VERSION_STRING "0.1.0"
