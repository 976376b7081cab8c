/** The keys of mail in the query cache. */
export const keys = {
  inbox: ['inbox'],
  /** The prefix of the mail of every run. */
  all_run_mail: ['run-mail'],
  run_mail: (run_id: string) => ['run-mail', run_id] as const,
  run_triggers: (run_id: string) => ['run-triggers', run_id] as const,
  own_triggers: ['own-triggers'],
  mail: (message_id: number) => ['mail', message_id] as const,
};
