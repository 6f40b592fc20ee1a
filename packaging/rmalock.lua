-- An environment module (Lmod). Its place and name tell the version:
--   /opt/modulefiles/rmalock/0.2.0.lua  for the program in  /opt/rmalock/0.2.0/bin
-- Where programs lie elsewhere, set RMALOCK_PREFIX before "module load", or change the line below.
local version = myModuleVersion()
local base = pathJoin(os.getenv("RMALOCK_PREFIX") or "/opt/rmalock", version)

whatis("Name: rmalock")
whatis("Version: " .. version)
whatis("Description: distributed locks on one-sided communication")
help([[
rmalock: distributed locks on one-sided communication.
  mpirun -n 4 rmalock dht      a verified job
  rmalock help                 all commands
Load the module of the MPI library that the program was built for first.
]])
prepend_path("PATH", pathJoin(base, "bin"))
prepend_path("MANPATH", pathJoin(base, "share/man"))
