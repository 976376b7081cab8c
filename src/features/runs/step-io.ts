/** Builds the input of the agent that runs a step or round, and reads its output. */
import { exceedsDepth } from '../../acp/depth.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Reader } from '../../store/store.ts';
import { limits } from './limits.ts';
import { parsed, parseSpec, type RunRow } from './queries/runs.ts';
import { findStep, listRunSteps, otherOutputsBytes } from './queries/steps.ts';
import type { AssignedWork } from './rules/graph.ts';

/** The content of `$SVC_STEP_INPUT` for a step. */
export interface StepInput {
  run_input: unknown;
  input: unknown;
  /** Outputs of the steps that this step depends on, by step key; null for a step without output. */
  needs: Record<string, unknown>;
  /** The input that a person gave when resuming the step. */
  answer?: unknown;
}

/** A step in the form that the leader receives. */
export interface StepReport {
  step_key: string;
  member_id: string;
  status: string;
  output: unknown;
  error_text: string | null;
}

/** The content of `$SVC_STEP_INPUT` for a round of the leader. */
export interface RoundInput {
  run_input: unknown;
  round: number;
  about: 'plan' | 'sum_up';
  members: { member_id: string; description: string; skills: string[] }[];
  steps: StepReport[];
}

/** The input of a step or round. */
export function getInput(reader: Reader, run: RunRow, work: AssignedWork): Promise<StepInput | RoundInput> {
  return work.kind === 'round' ? roundInput(reader, run, work.round) : stepInput(reader, run, work.step_key);
}

export async function stepInput(reader: Reader, run: RunRow, step_key: string): Promise<StepInput> {
  const step = (await findStep(reader, run.num, step_key))!;
  const needs: [string, unknown][] = [];
  for (const key of JSON.parse(step.depends_on) as string[]) {
    const needed = await findStep(reader, run.num, key);
    needs.push([key, parsed(needed?.output ?? null)]);
  }
  return {
    run_input: JSON.parse(run.input),
    input: parsed(step.input),
    needs: Object.fromEntries(needs),
    ...(step.answer !== null && { answer: parsed(step.answer) }),
  };
}

export async function roundInput(reader: Reader, run: RunRow, round: number): Promise<RoundInput> {
  const steps = (await listRunSteps(reader, run.num)).map((step) => ({
    step_key: step.step_key,
    member_id: step.member_id,
    status: step.status,
    output: parsed(step.output),
    error_text: step.error_text,
  }));
  return {
    run_input: JSON.parse(run.input),
    round,
    about: steps.length === 0 ? 'plan' : 'sum_up',
    members: parseSpec(run).members.map(({ member_id, description, skills }) => ({
      member_id,
      description,
      skills,
    })),
    steps,
  };
}

/**
 * Parses output as JSON if it is valid JSON; otherwise returns it as text. Truncates long output and adds a note about that.
 */
export function readOutput(bytes: Uint8Array): unknown {
  const shortened = bytes.subarray(0, sharedLimits.step_output_bytes_max);
  const text = new TextDecoder().decode(shortened);
  if (bytes.length > shortened.length)
    return `${text}\n[the output continues: only ${shortened.length} bytes are kept]`;
  if (exceedsDepth(text, sharedLimits.json_depth_max)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Whether the output (as JSON) of a step fits into its run. The total is limited because a leader, the dependent steps and
 * the run itself read all outputs at once.
 */
export async function hasOutputCapacity(
  reader: Reader,
  run_num: number,
  step_key: string,
  output: string | null,
): Promise<boolean> {
  const bytes = Buffer.byteLength(output ?? '');
  if (bytes <= limits.step_output_small_bytes) return true;
  return bytes + (await otherOutputsBytes(reader, run_num, step_key)) <= limits.run_outputs_bytes_max;
}
