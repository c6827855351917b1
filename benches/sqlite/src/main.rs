//! The comparisons of `benches/store.rs`, with SQLite in the same run: WAL, `synchronous=FULL`, a batch a
//! transaction.

use std::path::Path;

use backstop::state::StateRecord;
use rusqlite::{Connection, params};

#[path = "../../store.rs"]
#[allow(dead_code, reason = "it is a program of its own, too")]
mod store;

struct Sqlite(Connection);

impl Sqlite {
    fn open(dir: &Path) -> Box<dyn store::Log> {
        let connection = Connection::open(dir.join("state.db")).expect("a database");
        connection.pragma_update(None, "journal_mode", "WAL").expect("a pragma");
        connection.pragma_update(None, "synchronous", "FULL").expect("a pragma");
        let table = "CREATE TABLE sessions (id TEXT PRIMARY KEY, revision INTEGER, memory BLOB) WITHOUT ROWID";
        connection.execute(table, []).expect("a table");
        Box::new(Self(connection))
    }
}

impl store::Log for Sqlite {
    fn append(&mut self, batch: &[StateRecord]) {
        let transaction = self.0.transaction().expect("a transaction");
        {
            let put = "INSERT INTO sessions VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE
                       SET revision = excluded.revision, memory = excluded.memory WHERE excluded.revision > revision";
            let mut put = transaction.prepare_cached(put).expect("a statement");
            for record in batch {
                let (id, revision) = (record.session.as_str(), record.revision.cast_signed());
                put.execute(params![id, revision, record.memory.as_deref()]).expect("the disk works");
            }
        }
        transaction.commit().expect("the disk works");
    }
}

fn main() {
    store::compare(&[("SQLite, WAL, FULL", Sqlite::open)]);
}
