/** Answers what an agent asks, and judges how it asks. Ids and kinds of the options are taken as they are. */
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

/** `files`: what the turn wrote. */
export function judgePermission({ asked, updates }: Watch, files: readonly string[]): Finding {
  const request = asked[0];
  if (!request) {
    if (files.length > 0) return weak(`wrote ${files.join(', ')} without asking`, { files });
    return skipped(updates.has('tool_call') ? 'no tool that it used needed one' : 'it used no tool');
  }
  const options = optionsOf(request);
  const outcome = firstAllowed(request);
  const chosen = outcome.outcome === 'selected' ? outcome.optionId : null;
  const facts = { options, chosen, requests: asked.length, files };
  if (chosen === null)
    return failed(`offers nothing that allows it: ${words(options) || 'no options'}`, facts);
  const kinds = options.map(({ kind }) => kind);
  const troubles = [
    !kinds.includes('allow_once') && 'nothing allows it just once',
    !kinds.some((kind) => kind?.startsWith('reject')) && 'nothing rejects it',
    new Set(options.map(({ optionId }) => optionId)).size < options.length && 'one id for several options',
  ].filter(Boolean);
  const detail = [`${words(options)}; chosen: ${chosen}`, ...troubles].join('; ');
  return troubles.length > 0 ? weak(detail, facts) : ok(detail, facts);
}

function optionsOf(request: RequestPermissionRequest): PermissionOption[] {
  return Array.isArray(request.options) ? request.options.filter((option) => option !== null) : [];
}

function words(options: readonly PermissionOption[]): string {
  return options.map(({ optionId, kind }) => `${optionId} (${kind})`).join(', ');
}
