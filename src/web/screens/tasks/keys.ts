/** The keys of tasks and their messages in the query cache. */
export const keys = {
  task: (task_id: string) => ['task', task_id] as const,
  tasks: (team_id: string) => ['tasks', team_id] as const,
  messages: (team_id: string, task_id: string, q = '', thread = 0) =>
    ['messages', team_id, task_id, q, thread] as const,
  message: (task_id: string, message_id: number) => ['message', task_id, message_id] as const,
};
