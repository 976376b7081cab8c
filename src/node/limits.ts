/** Limits of the module `node`. Names end with their unit. */
import { GIB, KIB, MIB } from '../base/limits.ts';

export const limits = {
  /** Longest name of a file or folder. */
  path_segment_bytes_max: 255,
  /** Longest name of a git reference. */
  ref_chars_max: 1_024,
  /** Output on disk that is kept although the plane has committed it. */
  spool_keep_bytes: 64 * MIB,
  /** Grace period for processes that remain after the main process. */
  leftover_grace_ms: 2_000,
  /** Interval at which a node checks its sessions. */
  sweep_ms: 250,
  /** How long the end of a session waits for its last output. */
  drain_ms: 10_000,
  /** How long the end of a session waits for its FIFOs before it looks for processes that hold them. */
  pipes_wait_ms: 20,
  /** How long a start waits until the process runs. */
  start_wait_ms: 2_000,
  /** A start is answered after this time although the process does not run yet. */
  start_answer_ms: 10_000,
  /** How long a stop waits after SIGKILL. */
  kill_wait_ms: 3_000,
  /** How long the init process of a sandbox may take to end. */
  init_end_ms: 3_000,
  /** Age at which an empty cgroup of an unknown session is removed, and how often that is checked. No start takes so long. */
  leftover_cgroup_ms: 10 * 60 * 1000,
  /** The helper processes of each session are checked once in this period. */
  helper_check_ms: 5_000,
  /** Sessions whose helpers are checked in one sweep, at most. */
  helper_checks_per_sweep: 25,
  /** Descriptors of each process that every scan for holders of FIFOs reads. Most processes have fewer. */
  scan_descriptors: 64,
  /** Descriptors of one process that a scan reads at most, while `scan_further_ms` lasts. */
  scan_descriptors_max: 4_096,
  /** Time of a scan for processes with more than `scan_descriptors`, which the processes of one agent could use up. */
  scan_further_ms: 500,
  /** Time for environments and descriptors in all passes of a scan, well below `launcher_answer_ms`. */
  scan_ms_max: 10_000,
  /** A scan lets the launcher start programs after this time. */
  scan_slice_ms: 20,
  /** Shortest interval between two reads of the process tree. */
  tree_read_ms: 2_000,
  /** The launcher and the workers for folders end after this time without work. */
  launcher_idle_ms: 5_000,
  /** Attempts to start the launcher. */
  launcher_tries: 3,
  /** How long to wait for an answer of the launcher. */
  launcher_answer_ms: 30_000,
  /** Largest file in a session folder. */
  session_file_bytes_max: 4 * MIB,
  /** Largest file with the facts of a session. An earlier version could write so much. */
  facts_file_bytes_max: 64 * MIB,
  /** Warnings of one session that are recorded. */
  session_warnings_max: 1_000,
  /** Disk space is freed in steps of this size. */
  spool_punch_bytes: 16 * MIB,
  /** Open spool files. */
  spools_open_max: 512,
  /** Sessions that are adopted at the same time. */
  adopt_parallel: 32,
  /** With this much free beyond `disk_pause_bytes`, writers at 3 GiB/s cannot fill the disk within `guard_ample_s`. */
  guard_ample_bytes: 30 * GIB,
  /** Interval at which free disk space is checked while there is that much. */
  guard_ample_s: 10,
  /** Interval at which free disk space is checked while there is less. */
  guard_far_s: 1,
  /** Interval at which free disk space is checked while there is little left. */
  guard_near_s: 0.1,
  /** Output is held back while less disk space than this is free. */
  disk_pause_bytes: 1 * GIB,
  /** The same threshold as `disk_pause_bytes`, as a share of the disk. The smaller one applies. */
  disk_pause_share: 0.02,
  /** Disks with a pause threshold below this size get output in small pieces. */
  careful_below_bytes: 128 * MIB,
  /** Size of the pieces in which small disks get output. */
  careful_piece_bytes: 64 * KIB,
  /** The most that a FIFO holds: Linux lets an unprivileged process set no more (`pipe-max-size`). */
  pipe_bytes_max: MIB,
  /** Programs per probe. */
  probe_programs_max: 64,
  /** Variables and files of one program in a probe. */
  probe_items_max: 32,
  /** Programs that print their version at the same time. */
  probe_parallel: 4,
  /** Time for a program to print its version. */
  probe_version_ms: 10_000,
  /** Largest output that is read when a program prints its version. */
  probe_output_bytes_max: 4 * KIB,
  /** How long to keep reading the output of a command that has ended. */
  exec_drain_ms: 2_000,
  /** Jobs that read folders: changes, patches, files. */
  folder_views: {
    running: 6,
    running_per_owner: 3,
    running_per_resource: 2,
    waiting: 1_000,
    waiting_per_owner: 200,
    waiting_per_resource: 64,
  },
  /** Jobs that create and remove folders. They do not wait for reads. */
  folder_work: {
    running: 6,
    running_per_owner: 3,
    running_per_resource: 2,
    waiting: 5_000,
    waiting_per_owner: 1_000,
    waiting_per_resource: 1_000,
  },
  /** Entries of a git folder that are checked. */
  git_folder_entries_max: 500,
  /** Largest file in a git folder that is read. */
  git_short_file_bytes_max: 1 * MIB,
  /** Entries of a folder that are searched for FIFOs and devices. */
  special_files_entries_max: 50_000,
  /** User namespaces in one sandbox, with one or two of bubblewrap. Browsers and agents with a sandbox need a few. */
  sandbox_user_namespaces_max: 32,
  /** Largest sign-in file that is copied into a sandbox. */
  sign_in_bytes_max: 1 * MIB,
  /** Time limit of one job of a folder worker. */
  folder_job_ms: 15 * 60 * 1000,
  /** Interval at which folder workers that a signal has stopped are detected. */
  folder_worker_check_ms: 2_000,
  /** Largest answer of a folder worker. */
  folder_answer_bytes_max: 16 * MIB,
  /** Paths in one list of changes, which fits in a message of the link. */
  changed_paths_bytes_max: 2 * MIB,
  /** Time limit of a git command, and of freeing the space of output that is in the log. */
  git_timeout_ms: 30_000,
  /** Time limit of a git command that only looks something up. */
  git_lookup_timeout_ms: 10_000,
  /** After this time, an incomplete worktree is removed. */
  incomplete_worktree_ms: 60_000,
  /** Largest output of a git command that is read. */
  git_output_bytes_max: 8 * MIB,
  /** Largest index of a worktree. */
  git_index_bytes_max: 64 * MIB,
  /** Largest diff of one file. */
  diff_bytes_max: 1 * MIB,
  /** File searches that one job of a folder worker runs. */
  find_batch_max: 64,
  /** How long a node searches for repositories; the form of a new agent waits for it. */
  repositories_ms: 3_000,
  /** After this additional time, the search returns what it has found, even if the file system does not answer. */
  repositories_slack_ms: 500,
  /** Time limit of one git command of this search, so that one large repository does not use up all of its time. */
  repository_git_ms: 1_000,
  /** Repositories that are examined at the same time. */
  repositories_parallel: 4,
  /** Folders that are examined with git. */
  repository_candidates_max: 200,
  /** Entries of one folder that are searched for repositories. */
  repository_entries_max: 5_000,
  /** Largest new file that a diff shows. */
  untracked_file_bytes_max: 4 * MIB,
  /** Bytes of new files in which lines are counted. */
  untracked_bytes_max: 64 * MIB,
} as const;
