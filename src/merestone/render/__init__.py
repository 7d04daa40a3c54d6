"""Results as text, JSON, HTML and XML. Not here: deciding what to say about a row (`gate`)."""
