"""Whether the delivery and its change may pass. Not here: the guards and their words (`change.guards`), rules of rows (`gate`)."""
