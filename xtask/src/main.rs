//! The one door.
mod images;

fn main() -> anyhow::Result<()> {
    images::run(std::env::args().any(|argument| argument == "--json"))
}
