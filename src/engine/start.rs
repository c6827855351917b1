//! From a builder to running actors.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ractor::{Actor, ActorCell};

use super::RecoveryEngine;
use super::builder::{EngineBuilder, Place};
use crate::actors::{Root, RootArgs, Runner, RunnerPool, Shared, SharedParts, Stored, Writer};
use crate::policy::Durability;
use crate::policy::session::SessionMemory;
use crate::state::{FileStore, FileStoreOptions, Journal, MemoryStore, RecoveryStateStore, StateError};
use crate::strategy::UnnamedStrategy;

/// Why an engine did not start; nothing was left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The state directory cannot be used.
    #[error("cannot open the recovery state")]
    State(#[from] StateError),
    /// The threads for strategies cannot be started.
    #[error("cannot start the strategies' runtime")]
    Runtime(#[source] std::io::Error),
    /// The actors cannot be started.
    #[error("cannot start the actors")]
    Actors(#[from] ractor::SpawnErr),
    /// A strategy without a name was registered.
    #[error(transparent)]
    Strategy(#[from] UnnamedStrategy),
}

pub(super) async fn start(builder: EngineBuilder, parent: Option<ActorCell>) -> Result<RecoveryEngine, StartError> {
    builder.named?;
    let limits = builder.config.limits().clone();
    let journal = match &builder.place {
        Place::Directory(dir) if builder.config.persist_state() => Journal::of(dir, limits.journal_bytes),
        Place::Directory(_) | Place::Store(_) | Place::Memory => Journal::off(),
    };
    let options = FileStoreOptions {
        view_bytes: usize::try_from(limits.state_file_bytes).unwrap_or(usize::MAX),
        ..FileStoreOptions::default()
    };
    let store = open(builder.place, builder.config.durability(), options).await?;
    let runner = RunnerPool::new(builder.runner, limits.strategies_at_once, limits.stuck_threads)
        .map_err(StartError::Runtime)?;
    let code_patterns = builder.patterns.with_text_cap(limits.detect_bytes);
    let mut patterns = code_patterns.clone();
    super::handle::add_patterns(&mut patterns, &builder.config);
    let writer = Writer::new(store);
    #[cfg(feature = "test-util")]
    if let Some(latency) = builder.disk_latency {
        writer.set_latency(latency);
    }
    let shared = Shared::new(SharedParts {
        clock: builder.clock,
        strategies: builder.strategies,
        runner,
        config: builder.config,
        patterns,
        code_patterns,
        on_escalate: builder.on_escalate,
        client_factory: builder.clients,
        writer,
        journal,
        seed: builder.seed,
    });
    let inline = builder.runner == Runner::Inline;
    remember(&shared, inline).await?;
    let collected = crate::actors::collect(&shared.strategies);
    let args = RootArgs { shared: Arc::clone(&shared), collected: collected.clone(), inline };
    let (root, _) = match parent {
        None => Actor::spawn(None, Root, args).await?,
        Some(parent) => Actor::spawn_linked(None, Root, args, parent).await?,
    };
    Ok(RecoveryEngine::new(shared, root, collected))
}

async fn open(
    place: Place,
    durability: Durability,
    options: FileStoreOptions,
) -> Result<Box<dyn RecoveryStateStore>, StartError> {
    match place {
        Place::Store(store) => Ok(store),
        Place::Directory(dir) if durability != Durability::Off => {
            off_the_runtime(move || open_files(dir, options)).await?
        }
        Place::Directory(_) | Place::Memory => Ok(Box::new(MemoryStore::default())),
    }
}

fn open_files(dir: PathBuf, options: FileStoreOptions) -> Result<Box<dyn RecoveryStateStore>, StartError> {
    let (store, notes) = FileStore::open(&dir, options)?;
    for note in notes {
        tracing::warn!("{note}");
    }
    Ok(Box::new(store))
}

/// Publishes what the store remembers, and lets go of what nobody needs any more (R11).
async fn remember(shared: &Arc<Shared>, inline: bool) -> Result<(), StartError> {
    let known = Arc::clone(shared);
    let load = move || {
        let config = known.config();
        known.writer.with_store(|store| {
            store.visit(&mut |record| {
                let Some(memory) = record.memory else { return };
                // One that cannot be read is told so aloud when it is needed.
                let read = serde_json::from_slice::<SessionMemory>(&memory).unwrap_or_default();
                let stored = Stored::read(memory, &read, config.limits(), record.revision, known.now());
                known.stored.insert(record.session, stored);
            })
        })?;
        let open = known.stored.iter().filter(|stored| stored.has_episode()).count();
        known.found_open.store(open, Ordering::Relaxed);
        known.sweep();
        Ok::<_, StateError>(())
    };
    if inline { Ok(load()?) } else { Ok(off_the_runtime(load).await??) }
}

async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StartError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StartError::Runtime(error.into()))
}
