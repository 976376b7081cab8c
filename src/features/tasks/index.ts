/** Tasks of teams, and their threads. */
import type { Core, Feature } from '../feature.ts';
import type { MailboxFeature } from '../mailbox/index.ts';
import { createRun } from '../runs/creation.ts';
import type { RunsFeature } from '../runs/index.ts';
import type { Tokens } from '../tokens/service.ts';
import { publishTask, requireTask } from './find.ts';
import { taskHandlers } from './http.ts';
import { Messages } from './messages.ts';
import { renameInMessages } from './queries/messages.ts';
import { Tasks } from './service.ts';

export interface TasksNeeds {
  runs: RunsFeature;
  mailbox: MailboxFeature;
  tokens: Tokens;
}

export function openTasks(core: Core, { runs, mailbox, tokens }: TasksNeeds): Feature {
  const { scheduler } = runs;
  const tasks = new Tasks({
    ...core,
    createRun: (tx, input) => createRun(tx, { scheduler, nodes: core.nodes }, input),
  });
  const post = mailbox.mailbox;
  const messages = new Messages({ ...core, logger: core.log, post: (tx, letter) => post.post(tx, letter) });
  return {
    name: 'tasks',
    routes: taskHandlers({ tasks, messages, tokens, streams: core.streams }),
    resources: {
      task_id: (caller, action, { team_id, task_id }) =>
        core.store.read((reader) =>
          requireTask(reader, caller, action, { team_id: team_id!, task_id: task_id! }),
        ),
    },
    facts: { tasks: tasks.facts(), messages: messages.facts() },
    extensions: {
      publishTask: async (tx, task_num) => void (await publishTask(core.feed, tx, task_num)),
      onUserRenamed: renameInMessages,
    },
  };
}
