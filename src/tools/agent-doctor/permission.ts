/** Answers permission requests, and judges how the agent asks. Ids and kinds of options are used unchanged. */
import type { PermissionOption, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { PermissionOutcome, Watch } from './agent.ts';
import { type Finding, failed, ok, skipped, weak } from './report.ts';

/** The first option that allows it once, else the first that allows it at all. */
export function firstAllowed(request: RequestPermissionRequest): PermissionOutcome {
  const options = optionsOf(request);
  const option =
    options.find(({ kind }) => kind === 'allow_once') ??
    options.find(({ kind }) => kind?.startsWith('allow'));
  return option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' };
}

/** The first option that rejects it. */
export function firstRejected(request: RequestPermissionRequest): PermissionOutcome {
  const option = optionsOf(request).find(({ kind }) => kind?.startsWith('reject'));
  return option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' };
}

/** A description of what a turn did without asking; null: nothing. */
function unaskedIn({ permission_requests, acting }: Watch, files: readonly string[]): string | null {
  if (permission_requests.length === 0 && files.length > 0) return `wrote ${files.join(', ')} without asking`;
  return acting.unasked === null ? null : `acted without asking: ${acting.unasked}`;
}

/** Judges a turn that should run or fetch something, of an agent whose preset promises to ask. */
export function judgeAsked(watch: Watch): Finding {
  const unasked = unaskedIn(watch, []);
  const facts = { requests: watch.permission_requests.length };
  if (unasked !== null) return failed(`${unasked}, although its preset guarantees that it asks`, facts);
  const title = watch.permission_requests[0]?.toolCall?.title;
  if (watch.permission_requests.length > 0)
    return ok(`asks first: ${title ?? 'something without a title'}`, facts);
  return skipped('it did not use a tool');
}

/** `files`: what the turn wrote. `promised`: its preset promises that it asks. */
export function judgePermission(watch: Watch, files: readonly string[], must_ask: boolean): Finding {
  const unasked = unaskedIn(watch, files);
  if (unasked !== null && must_ask) {
    return failed(`${unasked}, although its preset guarantees that it asks`, { files });
  }
  const { permission_requests, updates } = watch;
  const request = permission_requests[0];
  if (!request) {
    if (unasked !== null) return weak(unasked, { files });
    return skipped(updates.has('tool_call') ? 'no tool that it used needed permission' : 'it used no tool');
  }
  const options = optionsOf(request);
  const outcome = firstAllowed(request);
  const chosen = outcome.outcome === 'selected' ? outcome.optionId : null;
  const facts = { options, chosen, requests: permission_requests.length, files };
  if (chosen === null) return failed(`no option allows it: ${listOf(options) || 'no options'}`, facts);
  const kinds = options.map(({ kind }) => kind);
  const warnings = [
    !kinds.includes('allow_once') && 'no option allows it once',
    !kinds.some((kind) => kind?.startsWith('reject')) && 'no option rejects it',
    new Set(options.map(({ optionId }) => optionId)).size < options.length && 'several options share an id',
  ].filter(Boolean);
  const detail = [`${listOf(options)}; chosen: ${chosen}`, ...warnings].join('; ');
  return warnings.length > 0 ? weak(detail, facts) : ok(detail, facts);
}

function optionsOf(request: RequestPermissionRequest): PermissionOption[] {
  return Array.isArray(request.options) ? request.options.filter((option) => option !== null) : [];
}

function listOf(options: readonly PermissionOption[]): string {
  return options.map(({ optionId, kind }) => `${optionId} (${kind})`).join(', ');
}
