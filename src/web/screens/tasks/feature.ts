/** What tasks add to the web UI. */
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { ListChecks } from 'lucide-react';
import { all } from '../../api/client.ts';
import type { WebFeature } from '../../feature.ts';
import { app } from '../../frame-routes.ts';
import { parseChoice, text } from '../../search.ts';
import { keys } from './keys.ts';

export interface TasksSearch {
  team?: string | undefined;
  task?: string | undefined;
  view?: 'list' | undefined;
  /** Searches the thread of the open task, or filters the tasks. */
  q?: string | undefined;
  /** The id of a message: only its thread is shown. */
  thread?: number | undefined;
}

const screen = createRoute({
  getParentRoute: () => app,
  path: '/tasks',
  validateSearch: (search: Record<string, unknown>): TasksSearch => ({
    team: text(search.team),
    task: text(search.task),
    view: parseChoice(search.view, ['list']),
    q: text(search.q),
    thread: Number.isSafeInteger(search.thread) ? (search.thread as number) : undefined,
  }),
  component: lazyRouteComponent(() => import('./tasks.tsx'), 'Tasks'),
});

export const tasks = {
  routes: [screen] as const,
  places: [{ to: '/tasks', label: 'Tasks', icon: ListChecks, group: 'Work', jump: 'k' }],
  found: {
    heading: 'Tasks',
    icon: ListChecks,
    query: (team_id) => ({
      queryKey: keys.tasks(team_id),
      queryFn: () => all('listTasks', { params: { team_id } }),
    }),
    entry: ({ id, key, title, status }) => ({
      id: String(id),
      label: `${key} ${title}`,
      status: String(status),
      href: `/tasks?task=${id}`,
    }),
  },
  records: {
    task: ({ id, team_id }) => ({ list: keys.tasks(String(team_id)), one: keys.task(String(id)), id: 'id' }),
  },
} satisfies WebFeature;
