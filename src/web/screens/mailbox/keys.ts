/** The keys of mail in the query cache. */
export const keys = {
  inbox: ['inbox'],
  run_mail: (run_id: string) => ['run-mail', run_id] as const,
  mail: (message_id: number) => ['mail', message_id] as const,
};
