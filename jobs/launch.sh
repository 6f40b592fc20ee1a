# jobs/launch.sh: for the batch scripts beside it, which read it. Two variables of the
# submitter's environment choose how ranks are started:
#
#   MPI      openmpi (the default) or mpich: which of "make build"'s programs
#   LAUNCH   srun (the default): Slurm starts the ranks itself, by PMIx for Open MPI
#            and PMI-2 for MPICH, and tells each where it is;
#            mpirun: the MPI library's launcher, inside the allocation
#
# launch ARGUMENTS... runs rmalock with a rank for each task of the job.

case ${MPI:=openmpi} in
openmpi) program=bin/rmalock pmi=pmix ;;
mpich) program=bin/rmalock-mpich pmi=pmi2 ;;
*)
	echo "MPI is $MPI, want openmpi or mpich" >&2
	exit 2
	;;
esac
[ -x $program ] || {
	echo "no $program in $PWD: make build, and submit from that folder" >&2
	exit 2
}

case ${LAUNCH:=srun} in
# A rank that dies ends the job step: srun by itself would let the others wait for it.
srun) launch() { srun --mpi=$pmi --kill-on-bad-exit=1 $program "$@"; } ;;
mpirun)
	case $MPI in
	openmpi) launch() { mpirun.openmpi -n "$SLURM_NTASKS" $program "$@"; } ;;
	mpich) launch() { mpirun.mpich -n "$SLURM_NTASKS" $program "$@"; } ;;
	esac
	;;
*)
	echo "LAUNCH is $LAUNCH, want srun or mpirun" >&2
	exit 2
	;;
esac

# Results go to a folder that is the same for a job that was requeued.
out=${RESULTS:-results}/$SLURM_JOB_NAME-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}
mkdir -p "$out"

# once FILE COMMAND...: the command's output becomes FILE, when it is through and if it
# was no failure. A job that was requeued finds what is through. srun may end with
# status 0 after a launch that failed: without output nothing is through.
once() {
	file=$1
	shift
	[ -e "$file" ] && return
	"$@" >"$file.part" || return
	[ -s "$file.part" ] || {
		echo "no output: $*" >&2
		return 1
	}
	mv "$file.part" "$file"
}
