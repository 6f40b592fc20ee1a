# A Spack recipe, for a repository of one's own: docs/install.md.
from spack.package import *

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.go import GoPackage
except ImportError:  # earlier ones have it in spack.package
    pass


class Rmalock(GoPackage):
    """Distributed locks on one-sided communication: MPI-3 RMA, RDMA verbs, and shared memory."""

    homepage = "https://github.com/rmalock/rmalock"
    git = "https://github.com/rmalock/rmalock.git"

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    variant("verbs", default=True, description="Build the backend for RDMA networks")

    depends_on("c", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("rdma-core", when="+verbs")

    requires(
        "^[virtuals=mpi] openmpi",
        "^[virtuals=mpi] mpich",
        policy="one_of",
        msg="rmalock is tested with Open MPI and MPICH",
    )

    build_directory = "cmd/rmalock"

    @property
    def build_args(self):
        tags = []
        if self.spec.satisfies("^[virtuals=mpi] mpich"):
            tags.append("mpich")
        if self.spec.satisfies("+verbs"):
            tags.append("verbs")
        # Of two -ldflags the last one counts: it strips as Spack's own, and names the version.
        args = super().build_args + ["-ldflags", f"-s -w -X main.release={self.version}"]
        return args + ["-tags", ",".join(tags)] if tags else args
