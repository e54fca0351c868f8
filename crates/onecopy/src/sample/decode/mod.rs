//! Fields to values.
