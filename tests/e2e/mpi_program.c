/* A program of MPICH for mpi_drun_test.cpp: checks what ranks tell one another, and fails as it is told.

     mpi_program [abort RANK | leave RANK | stay]
*/
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kNumbers = 100000 };

int main(int argc, char** argv) {
  static int mine[kNumbers], sums[kNumbers], theirs[kNumbers];
  const char* mode = argc > 1 ? argv[1] : "";
  const int chosen = argc > 2 ? atoi(argv[2]) : -1;
  int rank = 0, size = 0, i = 0, node_size = 0, *universe = NULL, known = 0;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < kNumbers; ++i) mine[i] = rank + i;
  MPI_Allreduce(mine, sums, kNumbers, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (i = 0; i < kNumbers; ++i)
    if (sums[i] != size * i + size * (size - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 99);
  MPI_Sendrecv(mine, kNumbers, MPI_INT, (rank + 1) % size, 0, theirs, kNumbers, MPI_INT, (rank + size - 1) % size, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (theirs[7] != (rank + size - 1) % size + 7) MPI_Abort(MPI_COMM_WORLD, 98);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &node_size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &known);
  printf("rank %d of %d, %d here, universe of %d\n", rank, size, node_size, known ? *universe : -1);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(mode, "abort") && rank == chosen) MPI_Abort(MPI_COMM_WORLD, 7);
  if (!strcmp(mode, "leave") && rank == chosen) _exit(0);
  if (!strcmp(mode, "abort") || !strcmp(mode, "leave") || !strcmp(mode, "stay")) pause();
  MPI_Finalize();
  return 0;
}
