"""Pass 3: touched partitions, change log and commit. Not here: the protocol of the commit (`writer.commit`)."""
