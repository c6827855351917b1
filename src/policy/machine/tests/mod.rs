mod properties;
mod restart;
mod stories;
mod table;
mod vectors;
