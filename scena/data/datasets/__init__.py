"""Named data sets that come with a package or that Keras can fetch."""
