"""One run on many processes, each with a part of the bodies: the same bits for any number of them."""
