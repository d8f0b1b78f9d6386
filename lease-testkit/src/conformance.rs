//! [`conformance!`](crate::conformance): the suite as tests of the crate that calls it.

/// Turns every case into a `#[test]` of its own, such as `fencing::token_grows_on_takeover`.
///
/// The harness is any type that implements [`Harness`](crate::Harness). These forms can be combined:
///
/// | form | tests |
/// |---|---|
/// | `conformance!(H)` | `basic renewal release fencing contention names`: what every backend does |
/// | `conformance!(H; inspect)` | the same and `inspect`, for a repo that implements [`Inspect`](lease_core::Inspect) |
/// | `conformance!(H; groups = [basic, renewal, contention])` | these: what a store with `delete_on_release` does |
/// | `conformance!(.. ; ignore = "needs PostgreSQL")` | marks them ignored, with the reason |
///
/// For a second harness in one file, put each call into a module of its own:
///
/// ```
/// # use lease_core::MemoryRepo;
/// # struct Kept(MemoryRepo);
/// # impl lease_testkit::Harness for Kept {
/// #     type Repo = MemoryRepo;
/// #     async fn open() -> Self { Self(MemoryRepo::new()) }
/// #     async fn client(&self) -> MemoryRepo { self.0.clone() }
/// #     async fn step_clock(&self, by_us: i64) { self.0.step_clock(by_us) }
/// # }
/// # use Kept as Deleted;
/// lease_testkit::conformance!(Kept; inspect; ignore = "needs PostgreSQL: cargo xtask test");
///
/// mod delete_on_release {
///     use super::Deleted;
///     lease_testkit::conformance!(
///         Deleted;
///         groups = [basic, renewal, contention];
///         ignore = "needs PostgreSQL: cargo xtask test"
///     );
/// }
/// # mod others {
/// #     mod a { lease_testkit::conformance!(super::super::Kept); }
/// #     mod b { lease_testkit::conformance!(super::super::Kept; ignore = "why"); }
/// #     mod c { lease_testkit::conformance!(super::super::Kept; inspect); }
/// #     mod d { lease_testkit::conformance!(super::super::Kept; groups = [names, inspect,]); }
/// # }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($harness:ty) => {
        $crate::conformance!($harness; groups = [basic, renewal, release, fencing, contention, names]);
    };
    ($harness:ty; ignore = $reason:literal) => {
        $crate::conformance!(
            $harness; groups = [basic, renewal, release, fencing, contention, names]; ignore = $reason
        );
    };
    ($harness:ty; inspect $(; ignore = $reason:literal)?) => {
        $crate::conformance!(
            $harness;
            groups = [basic, renewal, release, fencing, contention, names, inspect]
            $(; ignore = $reason)?
        );
    };
    ($harness:ty; groups = [$($group:ident),+ $(,)?]) => {
        type HarnessUnderTest = $harness;
        $($crate::__cases!($group => [$crate::__tests], []);)+
    };
    ($harness:ty; groups = [$($group:ident),+ $(,)?]; ignore = $reason:literal) => {
        type HarnessUnderTest = $harness;
        $($crate::__cases!($group => [$crate::__tests], [$reason]);)+
    };
}

/// One group's cases as tests, ignored if there is a reason.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([] $group:ident $($name:ident: $law:literal, $bug:literal, $says:literal;)*) => {
        mod $group {$(
            #[doc = $says]
            #[test]
            fn $name() {
                $crate::run_case(async |store: &super::HarnessUnderTest| $crate::cases::$group::$name(store).await);
            }
        )*}
    };
    ([$reason:literal] $group:ident $($name:ident: $law:literal, $bug:literal, $says:literal;)*) => {
        mod $group {$(
            #[doc = $says]
            #[test]
            #[ignore = $reason]
            fn $name() {
                $crate::run_case(async |store: &super::HarnessUnderTest| $crate::cases::$group::$name(store).await);
            }
        )*}
    };
}
