"""Judge on several workers: the only folder that knows Dask, and imported only for `--loop-cluster`."""
