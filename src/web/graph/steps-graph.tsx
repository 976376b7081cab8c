/**
 * The graph of a team's or a run's steps. Each node is a button labeled with its step and status. The graph can be panned and
 * zoomed; the screens also offer its content as a table.
 */
import {
  type Edge,
  Handle,
  type Node,
  type NodeProps,
  Panel,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { Maximize, ZoomIn, ZoomOut } from 'lucide-react';
import { memo, useCallback, useEffect, useMemo, useRef } from 'react';
import { IconButton } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { Status } from '../ui/status.tsx';
import './graph.css';
import { type GraphStep, graphKey, layoutSteps, NODE, type Plan } from './layout.ts';

export interface ShownStep extends GraphStep {
  /** Undefined for the steps of a definition. */
  status?: string;
}

export interface StepsGraphProps {
  steps: readonly ShownStep[];
  label: string;
  selected?: string | undefined;
  onSelect?: (step_key: string) => void;
}

type StepNode = Node<{
  step: ShownStep;
  chosen: boolean;
  onSelect: ((step_key: string) => void) | undefined;
}>;

const nodeTypes = { step: memo(StepBox) };
const fitting = { padding: 0.06, maxZoom: 1, minZoom: 0.05 };
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
  const edges = useMemo(() => toEdges(plan), [plan]);

  const isLarge = steps.length > FIT_STEPS_MAX;
  const start = plan.at.get(selected ?? '') ?? plan.at.values().next().value;
  const first = isLarge && start ? { nodes: [{ id: start.name }], maxZoom: 0.8 } : fitting;
  // biome-ignore lint/correctness/useExhaustiveDependencies: for another graph, not for another selection
  useEffect(() => {
    const frame = requestAnimationFrame(() => void fitView(first));
    return () => cancelAnimationFrame(frame);
  }, [shape, fitView]);

  return (
    <ReactFlow
      aria-label={label}
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
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
      onError={nothing}
      className="steps-graph"
    >
      <Panel position="top-right" className="flex gap-0.5 rounded-md border border-line bg-ground">
        <IconButton label="Zoom in" icon={<ZoomIn aria-hidden />} onClick={() => void zoomIn()} />
        <IconButton label="Zoom out" icon={<ZoomOut aria-hidden />} onClick={() => void zoomOut()} />
        <IconButton
          label={isLarge ? 'Go to selected step' : 'Fit to view'}
          icon={<Maximize aria-hidden />}
          onClick={() => void fitView(first)}
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

function toEdges({ arrows, at }: Plan): Edge[] {
  return arrows.map(({ from, to }) => ({
    id: `${at.get(from)!.name} ${at.get(to)!.name}`,
    source: at.get(from)!.name,
    target: at.get(to)!.name,
    // The table has the dependencies.
    domAttributes: { 'aria-hidden': true },
  }));
}

function StepBox({ data: { step, chosen, onSelect } }: NodeProps<StepNode>) {
  const { step_key, member_id, status } = step;
  const classes = cx(
    'flex h-full w-full flex-col justify-center rounded-md border bg-raised px-2 text-left leading-4',
    chosen ? 'border-accent outline-2 outline-accent' : 'border-line-strong/70',
    (status === 'pending' || status === 'skipped') && 'border-dashed',
  );
  const content = (
    <>
      <span className="block w-full truncate font-medium" title={step_key}>
        {step_key}
      </span>
      <span className="flex w-full min-w-0 items-center gap-1.5 text-xs">
        {status && <Status status={status} className="shrink-0" />}
        <span className="truncate text-muted">{member_id}</span>
      </span>
    </>
  );
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} className="invisible" />
      {onSelect ? (
        <button
          type="button"
          aria-pressed={chosen}
          onClick={() => onSelect(step_key)}
          className={cx('pointer-events-auto', classes)}
        >
          {content}
        </button>
      ) : (
        <div className={classes}>{content}</div>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} className="invisible" />
    </>
  );
}
