//! The programs are in `src/bin`. This is where the Rust of the book is compiled, and run where it needs nothing:
//! `cargo test -p lease-examples --doc`. A rule of the house sees that no page with Rust is left out.

#[cfg(doctest)]
mod book {
    macro_rules! pages {
        ($($name:ident: $page:expr;)*) => {$(
            #[doc = $page]
            struct $name;
        )*};
    }

    pages! {
        Readme: include_str!("../../README.md");
        Postgres: include_str!("../../docs/getting-started/postgres.md");
        Mysql: include_str!("../../docs/getting-started/mysql.md");
        Sqlite: include_str!("../../docs/getting-started/sqlite.md");
        Next: include_str!("../../docs/getting-started/next.md");
        Moving: include_str!("../../docs/moving.md");
        Operating: include_str!("../../docs/operating.md");
    }
}
