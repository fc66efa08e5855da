//! What git says of the files that an edit would write.
