//! The allocator of the `quorba` process: no request for memory keeps a node's ring waiting.
//!
//! The system's own joins small pieces that were freed when somebody asks for a large one, all of
//! them in one go. mimalloc does not; but it copies a large piece that grows, and a state of a
//! gigabyte grows by doubling. So small pieces are mimalloc's, and large ones are mappings of their
//! own, which the kernel moves without touching what is in them, and has back when they are freed.
//!
//! What it is not: a place for anything else. It is the only room of Quorba with unsafe code.
//!
//! Invariant: by its layout alone it is known whose a piece is, so nothing is kept about any.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

use mimalloc::MiMalloc;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

/// From here on a piece is a mapping of its own. To copy less takes less than a millisecond; and
/// what is asked for and freed many times a second is better kept in the process.
pub const LARGE_BYTES: usize = 4 << 20;

/// No machine has smaller pages; a mapping begins with one.
const PAGE_BYTES: usize = 4096;

/// See the crate's text. To be used as a `#[global_allocator]`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heap;

const fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE_BYTES && layout.align() <= PAGE_BYTES
}

/// Zeroed memory; null if there is none.
fn map(bytes: usize) -> *mut u8 {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the kernel chooses the place, so nothing that is in use is replaced.
    let mapped = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, flags) };
    mapped.map_or(ptr::null_mut(), <*mut _>::cast)
}

// SAFETY: a piece is what `map` or mimalloc gave, of at least the size and alignment asked for, and
// goes back to the one that gave it, as `is_large` says the same of one layout each time. Nothing
// here panics or allocates by itself.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promise, a size that is not zero, is what is asked.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as in `alloc`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: a mapping of that size, which nobody uses any more. The kernel may have
            // joined it to its neighbours; if it can have no more mappings it stays, and is lost.
            let _ = unsafe { rustix::mm::munmap(piece.cast(), layout.size()) };
            return;
        }
        // SAFETY: `alloc` gave it with this layout, so it is mimalloc's.
        unsafe { MiMalloc.dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, is no more than
        // a layout may have.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_large(layout), is_large(new_layout)) {
            // SAFETY: `alloc` gave it with this layout, so it is mimalloc's.
            (false, false) => unsafe { MiMalloc.realloc(piece, layout, new_size) },
            (true, true) => {
                let (old_size, flags) = (layout.size(), MremapFlags::MAYMOVE);
                // SAFETY: the whole of a mapping of that size, which only the caller uses. If it
                // fails it is as it was.
                let moved = unsafe { rustix::mm::mremap(piece.cast(), old_size, new_size, flags) };
                moved.map_or(ptr::null_mut(), <*mut _>::cast)
            }
            _ => {
                // SAFETY: `new_size` is not zero, by the caller's promise.
                let new = unsafe { self.alloc(new_layout) };
                if !new.is_null() {
                    // SAFETY: two pieces, each at least as long as the shorter one; the old one is
                    // the caller's to give up, and is given up once it has been copied.
                    unsafe {
                        ptr::copy_nonoverlapping(piece, new, layout.size().min(new_size));
                        self.dealloc(piece, layout);
                    }
                }
                new
            }
        }
    }
}
