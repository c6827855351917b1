//! The `backstop` program; see [`backstop::cli`].

fn main() -> std::process::ExitCode {
    backstop::cli::main()
}
