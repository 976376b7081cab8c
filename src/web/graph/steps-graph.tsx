/**
 * The graph of a team's or a run's steps. Each node is a button labeled with its step and status. The graph can be panned and
 * zoomed; the screens also offer its content as a table.
 */
import {
  BaseEdge,
  type Edge,
  type EdgeProps,
  Panel,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { Maximize, ZoomIn, ZoomOut } from 'lucide-react';
import { memo, useCallback, useEffect, useMemo, useRef } from 'react';
import { IconButton } from '../ui/button.tsx';
import './graph.css';
import { arrowPath, graphKey, layoutSteps, type Plan } from './layout.ts';
import { NODE, type ShownStep } from './step.ts';
import { StepBox, type StepNode } from './step-box.tsx';

export interface StepsGraphProps {
  steps: readonly ShownStep[];
  label: string;
  selected?: string | undefined;
  onSelect?: (step_key: string) => void;
}

const nodeTypes = { step: memo(StepBox) };
const edgeTypes = { routed: memo(RoutedEdge) };
// Its name is in the list of licenses instead of on the graph.
const proOptions = { hideAttribution: true };
/** The zoom controls are above the steps. */
const padding = { top: '48px', right: '16px', bottom: '8px', left: '16px' } as const;
const fitting = { padding, maxZoom: 1, minZoom: 0.05 };
const nothing = () => {};
/** A larger graph starts at the selected step, because all steps are too many to draw at once. */
const FIT_STEPS_MAX = 300;

export default function StepsGraph(props: StepsGraphProps) {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
}

function Flow({ steps, label, selected, onSelect }: StepsGraphProps) {
  const { fitView, zoomIn, zoomOut } = useReactFlow();
  const shape = graphKey(steps);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the plan depends only on the shape
  const plan = useMemo(() => layoutSteps(steps), [shape]);
  const select = useRef(onSelect);
  select.current = onSelect;
  const canSelect = onSelect !== undefined;
  const choose = useCallback((step_key: string) => select.current?.(step_key), []);

  const nodes = useNodes(steps, plan, selected, canSelect ? choose : undefined);
  const edges = useMemo(() => toEdges(plan, steps), [plan, steps]);

  const isLarge = steps.length > FIT_STEPS_MAX;
  const start = plan.at.get(selected ?? '') ?? plan.at.values().next().value;
  const first = isLarge && start ? { nodes: [{ id: start.name }], maxZoom: 0.8 } : fitting;
  /** The keys of the steps that were there when the user moved or zoomed the graph; null: it shows what it should. */
  const moved = useRef<readonly string[] | null>(null);
  const keepView = () => {
    moved.current = [...plan.at.keys()];
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: for another graph, not for another selection
  useEffect(() => {
    // Adding a step does not move the user's view. A graph without the old steps is a different one.
    if (moved.current?.every((key) => plan.at.has(key))) return;
    moved.current = null;
    const frame = requestAnimationFrame(() => void fitView(first));
    return () => cancelAnimationFrame(frame);
  }, [shape, fitView]);
  const zoom = (change: () => Promise<boolean>) => {
    keepView();
    void change();
  };

  return (
    <ReactFlow
      aria-label={label}
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      proOptions={proOptions}
      fitView
      fitViewOptions={first}
      minZoom={isLarge ? 0.3 : 0.05}
      maxZoom={2}
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      // The button in a node handles the keys.
      disableKeyboardA11y
      deleteKeyCode={null}
      selectionKeyCode={null}
      panActivationKeyCode={null}
      zoomOnScroll={false}
      zoomOnDoubleClick={false}
      preventScrolling={false}
      onlyRenderVisibleElements={isLarge}
      // Only moves by the user have an event.
      onMoveStart={(event) => event && keepView()}
      onError={nothing}
      className="steps-graph"
    >
      <Panel position="top-right" className="flex gap-0.5 rounded-md border border-line bg-ground">
        <IconButton label="Zoom in" icon={<ZoomIn aria-hidden />} onClick={() => zoom(zoomIn)} />
        <IconButton label="Zoom out" icon={<ZoomOut aria-hidden />} onClick={() => zoom(zoomOut)} />
        <IconButton
          label={isLarge ? 'Go to selected step' : 'Fit'}
          icon={<Maximize aria-hidden />}
          onClick={() => {
            moved.current = null;
            void fitView(first);
          }}
        />
      </Panel>
    </ReactFlow>
  );
}

function useNodes(
  steps: readonly ShownStep[],
  plan: Plan,
  selected: string | undefined,
  onSelect: ((step_key: string) => void) | undefined,
): StepNode[] {
  return useMemo(() => {
    const nodes = new Map<string, StepNode>();
    for (const step of steps) {
      const { name, x, y } = plan.at.get(step.step_key)!;
      nodes.set(step.step_key, {
        id: name,
        type: 'step',
        position: { x: x - NODE.width / 2, y: y - NODE.height / 2 },
        ...NODE,
        data: { step, chosen: step.step_key === selected, onSelect },
        // The button in the node has the step, the status and the member.
        ariaRole: 'presentation',
        domAttributes: { 'aria-roledescription': undefined },
      });
    }
    return [...nodes.values()];
  }, [steps, plan, selected, onSelect]);
}

type StepEdge = Edge<{ path: string }>;

function toEdges(plan: Plan, steps: readonly ShownStep[]): StepEdge[] {
  const status = new Map(steps.map((step) => [step.step_key, step.status]));
  return plan.arrows.map((arrow) => {
    const [source, target] = [plan.at.get(arrow.from)!.name, plan.at.get(arrow.to)!.name];
    return {
      id: `${source} ${target}`,
      source,
      target,
      type: 'routed',
      data: { path: arrowPath(arrow, plan.at) },
      className: edgeClass(status.get(arrow.from), status.get(arrow.to)),
      // The table has the dependencies.
      domAttributes: { 'aria-hidden': true },
    };
  });
}

function edgeClass(from: string | undefined, to: string | undefined): string {
  if (to === 'running') return 'edge-active';
  if (from === 'skipped' || to === 'skipped') return 'edge-skipped';
  return from === 'completed' ? 'edge-done' : 'edge-open';
}

function RoutedEdge({ data }: EdgeProps<StepEdge>) {
  return data && <BaseEdge path={data.path} />;
}
