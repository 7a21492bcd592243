"""Writing data files: records become rows, rows become files of bounded size, files go to the object store."""
