//! Rules that can be broken on purpose, so that suites, models and simulations can prove that they would notice.

/// An enum of mutants. The text of each says what then goes wrong.
macro_rules! mutants {
    ($(#[doc = $about:literal])* $mutants:ident { $(#[doc = $says:literal] $name:ident,)* }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[cfg_attr(
            not(feature = "mutants"),
            allow(dead_code, unreachable_pub, reason = "it can be named, and all of it used, with the feature alone")
        )]
        pub enum $mutants { $(#[doc = $says] $name,)* }

        #[cfg(feature = "mutants")]
        impl $mutants {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What then goes wrong.
            #[must_use]
            pub fn says(self) -> &'static str {
                match self { $(Self::$name => $says.trim_ascii(),)* }
            }
        }
    };
}

pub(crate) use mutants;
