mod limits;
mod properties;
mod restart;
mod stories;
mod table;
mod vectors;
mod walk;
