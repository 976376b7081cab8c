/**
 * Any graph, any members, any order of outcomes and commands, with crashes and late events: a step never runs twice at the same
 * time, none starts too early or is forgotten, and what has ended stays ended.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryGraph } from '../../../testing/memory-graph.ts';
import { anyRun, RunSimulation } from '../../../testing/run-simulation.ts';

test('for any order of events, every step runs, in order and once at a time', async () => {
  await fc.assert(
    fc.asyncProperty(anyRun, async ({ shape, plain_max, moves }) => {
      const stage = { graph: new MemoryGraph(shape), insert: async () => {} };
      const story = await RunSimulation.begin(stage, plain_max);
      for (const move of moves) {
        if (move.crash) stage.graph = stage.graph.copy();
        await story.run(move);
      }
      await story.finish();
      expect(story.faults).toEqual([]);
    }),
    { numRuns: 1_500 },
  );
});
