"""A worker of the differential test that fails under PyTorch's @record: rank 1 raises, the others wait."""
import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("bad value 42\nsecond line")
    time.sleep(100)


if __name__ == "__main__":
    main()
