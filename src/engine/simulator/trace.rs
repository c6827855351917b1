use std::fmt::Write;

/// What was seen of one simulated world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub(super) seed: u64,
    pub(super) steps: Vec<String>,
    pub(super) broken: Vec<String>,
}

impl Trace {
    /// The world's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Everything that was seen at the engine's edge, in order, with its virtual time.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// The promises that were broken.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// A number of everything that was seen: two runs of one seed have the same.
    pub fn digest(&self) -> u64 {
        let bytes = self.steps.iter().chain(&self.broken).flat_map(|step| step.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    /// The command that runs this world again.
    pub fn replay(&self) -> String {
        format!("cargo run --example simulate --features test-util -- --seed {}", self.seed)
    }

    /// What was broken, and the line that shows it again.
    pub fn report(&self) -> String {
        let mut text = format!("{}\n", self.replay());
        for broken in &self.broken {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "  broken: {broken}");
        }
        text
    }
}
