/** What each method of the actor surface does in a team. Whoever calls is known, and each call is one transaction. */
import { limits } from '../../base/limits.ts';
import type { ActorMethod, ActorRequest, ActorResult, MailRecord, StepHead } from '../../contract/actor.ts';
import { type ActorCaller, humanActorId } from '../../domain/actor.ts';
import { type ActorAction, mustHaveRight } from '../../domain/actor-rights.ts';
import { invalid, problems } from '../../domain/problem.ts';
import type { Step } from '../../domain/run.ts';
import { findStep } from '../../store/runs.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { humansOf } from '../../store/teams.ts';
import type { MemberAnswerer, Reviews } from '../acp/reviews.ts';
import { ofTeams } from '../mail/addresses.ts';
import { resolveActor } from '../teams/cast.ts';
import {
  type Acting,
  type ActingInRun,
  type Asked,
  actAs,
  actAsOperator,
  actInRun,
  peersOf,
  specOf,
} from './acting.ts';
import type { ActorDeps, InboxOf } from './deps.ts';
import { mustBeOfRun, mustBeOfStep } from './lateness.ts';

export type TeamMethod = Exclude<ActorMethod, 'whoami'>;
export type TeamMethods = {
  [M in TeamMethod]: (caller: ActorCaller, params: ActorRequest<M>) => Promise<ActorResult<M>>;
};

export interface TeamMethodsOptions extends ActorDeps {
  store: Store;
  reviews: Pick<Reviews, 'list' | 'listFor' | 'respond' | 'respondAs'>;
}

export function teamMethods({ store, reviews, runs, mailbox, triggers }: TeamMethodsOptions): TeamMethods {
  /** A change in a run, by somebody who may make it. */
  const change = <T>(
    caller: ActorCaller,
    asked: Asked,
    action: ActorAction,
    act: (tx: Tx, acting: ActingInRun) => T,
  ): Promise<T> =>
    store.write((tx) => {
      const acting = actInRun(tx, caller, asked);
      mustHaveRight(acting.role, action);
      return act(tx, acting);
    });

  /** A change that a session of an earlier attempt of the run comes too late for. */
  const word: typeof change = (caller, asked, action, act) =>
    change(caller, asked, action, (tx, acting) => {
      mustBeOfRun(tx, caller, acting.run);
      return act(tx, acting);
    });

  const inbox = (caller: ActorCaller, asked: ActorRequest<'inbox'>): Promise<MailRecord[]> =>
    store
      .read((reader) => ownOf(actAs(reader, caller, asked)))
      .then((own) => {
        const { limit = limits.actor_inbox_items_max, status } = asked;
        return mailbox.inbox({ ...own, limit, all: status === 'all' });
      });

  return {
    'team-members': (caller, asked) =>
      store.read((reader) => {
        const { team, run } = inTeam(reader, caller, asked);
        const names = humansOf(reader, team.num).map(({ username }) => username);
        const creator = usernameOfId(reader, team.created_by);
        const people = [...new Set([...(creator === null ? [] : [creator]), ...names])].map(humanActorId);
        return { members: peersOf(team, specOf(team, run), people) };
      }),
    'run-members': (caller, asked) =>
      store.read((reader) => runs.members(reader, actInRun(reader, caller, asked).run)),

    inbox: async (caller, asked) => ({ messages: await inbox(caller, asked) }),
    receive: async (caller, asked) => {
      const there = await inbox(caller, asked);
      if (there.length > 0) return { messages: there };
      const own = await store.read((reader) => ownOf(actAs(reader, caller, asked)));
      await mailbox.mailed(own, limits.actor_receive_ms);
      return { messages: await inbox(caller, asked) };
    },
    ack: (caller, { message_id, ...asked }) =>
      store.write((tx) => mailbox.ack(tx, { ...ownOf(actAs(tx, caller, asked)), message_id })),
    send: (caller, { to, payload, idempotency_key = null, ...asked }) =>
      change(caller, asked, 'mail.use', (tx, { actor_id, team, run }) => {
        const cast = { team, spec: specOf(team, run), user_id: run.created_by };
        const to_actor_id = resolveActor(tx, cast, to).actor_id;
        const session_id = caller.session?.id ?? null;
        const letter = { run, from_actor_id: actor_id, to_actor_id, payload, session_id, idempotency_key };
        return mailbox.send(tx, letter);
      }),

    'step-list': (caller, { step_key, ...asked }) =>
      store.read((reader) => {
        const { run } = actInRun(reader, caller, asked);
        const steps = runs.steps(reader, run);
        if (step_key === undefined) return { steps: steps.map(headOf) };
        const found = steps.filter((step) => step.step_key === step_key);
        if (found.length === 0) throw problems.stepNotFound();
        return { steps: found };
      }),
    'step-add': (caller, asked) =>
      word(caller, asked, 'steps.add', (tx, { run, actor_id }) => {
        const { step_key, member_id, depends_on = [], prompt = '', input = null } = asked;
        return runs.addStep(tx, run, { step_key, member_id, depends_on, prompt, input }, actor_id);
      }),
    'step-complete': (caller, asked) =>
      word(caller, asked, 'own_step.end', (tx, acting) => {
        mustEnd(tx, caller, acting, asked.step_key);
        return runs.completeStep(tx, acting.run, asked.step_key, asked.output ?? null, acting.actor_id);
      }),
    'step-fail': (caller, asked) =>
      word(caller, asked, 'own_step.end', (tx, acting) => {
        mustEnd(tx, caller, acting, asked.step_key);
        return runs.failStep(tx, acting.run, asked.step_key, errorText(asked), acting.actor_id);
      }),
    'step-input-required': (caller, asked) =>
      word(caller, asked, 'own_step.end', (tx, acting) => {
        mustEnd(tx, caller, acting, asked.step_key);
        return runs.requireInput(tx, acting.run, asked.step_key, asked.reason, acting.actor_id);
      }),
    'run-complete': (caller, asked) =>
      word(caller, asked, 'run.end', (tx, { run, actor_id }) =>
        runs.completeRun(tx, run, asked.output ?? null, actor_id),
      ),
    'run-fail': (caller, asked) =>
      word(caller, asked, 'run.end', (tx, { run, actor_id }) =>
        runs.failRun(tx, run, errorText(asked), actor_id),
      ),

    'time-trigger-list': (caller, asked) =>
      store.read((reader) => {
        return { triggers: triggers.list(reader, ownOf(actAs(reader, caller, asked))) };
      }),
    'time-trigger-set': (caller, { at, every_seconds, cron, timezone, payload, ...asked }) =>
      word(caller, asked, 'triggers.use', (tx, { run, actor_id }) =>
        triggers.set(tx, { run, actor_id, at, every_seconds, cron, timezone, payload }),
      ),
    'time-trigger-cancel': (caller, { trigger_id, ...asked }) =>
      store.write((tx) => triggers.cancel(tx, { ...ownOf(actAs(tx, caller, asked)), trigger_id })),

    'permission-review-list': async (caller, asked) => {
      const acting = await store.read((reader) => actAsOperator(reader, caller, asked));
      if (acting.kind === 'member') return { reviews: await reviews.listFor(answererOf(acting)) };
      return { reviews: (await reviews.list(acting.caller, { status: 'pending' }, {})).items };
    },
    'permission-review-respond': async (caller, { review_id, decision, option_id, outcome, ...asked }) => {
      if ((outcome === undefined) === (decision === undefined && option_id === undefined))
        throw invalid('decision must be one of decision, option_id and outcome');
      const acting = await store.read((reader) => actAsOperator(reader, caller, asked));
      const answer = { decision, option_id, outcome };
      if (acting.kind === 'member') return reviews.respondAs(answererOf(acting), review_id, answer);
      return reviews.respond(acting.caller, review_id, answer, null);
    },
  };
}

function inTeam(reader: Reader, caller: ActorCaller, asked: Asked) {
  const acting = actAs(reader, caller, asked);
  const { team, run } = acting.team === null ? actInRun(reader, caller, asked) : acting;
  return { team: team!, run };
}

/** A worker ends its own steps; which one it is follows from the step alone. */
function mustEnd(tx: Tx, caller: ActorCaller, acting: ActingInRun, step_key: string): void {
  const step = findStep(tx, acting.run.num, step_key);
  if (!step) throw problems.stepNotFound();
  const own = acting.kind === 'member' && step.member_id === acting.member.member_id;
  if (!own) mustHaveRight(acting.role, 'steps.end');
  mustBeOfStep(tx, caller, step);
}

/** Members are the same actors in every run of their team; an agent of one run has no say in the others. */
function ownOf(acting: Acting): InboxOf {
  const { actor_id, run } = acting;
  const of_all = run === null && acting.kind === 'human';
  return { actor_id, run_num: run?.num ?? null, ...(of_all && ofTeams(acting.caller, acting)) };
}

function answererOf(acting: Extract<Acting, { kind: 'member' }>): MemberAnswerer {
  return { ...ownOf(acting), member_id: acting.member.member_id, team_num: acting.team.num };
}

function errorText({ error_text }: { error_text: string }): string {
  if (error_text.trim() === '') throw invalid('error_text is required', 'error_text_required');
  return error_text;
}

function headOf({ input: _, output: __, prompt: ___, ...head }: Step): StepHead {
  return head;
}

function usernameOfId(reader: Reader, user_id: string): string | null {
  const query = reader.sql.selectFrom('users').select('username').where('id', '=', user_id);
  return reader.get(query)?.username ?? null;
}
