/** What an agent printed: numbered lines, followed live, with a find of their own and an address for every line. */
import { useLocation, useNavigate } from '@tanstack/react-router';
import { ArrowDown, Clock, Search, WrapText } from 'lucide-react';
import { type FormEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { AgentRecord } from '../../../api/queries.ts';
import { type AgentLog, useAgentLog } from '../../../live/agent-log.ts';
import { useStepKeys } from '../../../shell/step-keys.ts';
import { patternOf } from '../../../transcript/find.ts';
import { Button, IconButton } from '../../../ui/button.tsx';
import { inputClass } from '../../../ui/field.tsx';
import { hasModifier, isTyping } from '../../../ui/keys.ts';
import { Empty, Failed, Skeleton } from '../../../ui/states.tsx';
import { ChosenBar } from './chosen-bar.tsx';
import { Download } from './download.tsx';
import { EndLine } from './end-line.tsx';
import { FindBar } from './find-bar.tsx';
import { step, type Wanted } from './finder.ts';
import { LinesList, type ListHandle } from './lines-list.tsx';
import { useOptions } from './options.ts';
import { fragmentOf, type Range, rangeOf, reaching } from './range.ts';
import { Stdin } from './stdin.tsx';
import { useFound } from './use-found.ts';

export function OutputTab({ agent }: { agent: AgentRecord }) {
  const log = useAgentLog(agent.id);
  return (
    <div className="flex h-full min-h-0 min-w-0 flex-1 flex-col">
      <Lines key={agent.id} agent={agent} log={log} />
      {agent.stdin && agent.protocol !== 'acp' && <Stdin agent={agent} />}
    </div>
  );
}

function Lines({ agent, log }: { agent: AgentRecord; log: AgentLog }) {
  const { lines } = log;
  const { version } = lines;
  const [options, setOptions] = useOptions();
  const list = useRef<ListHandle>(null);
  const [range, setRange] = useRange(list, lines.last);
  const [follows, setFollows] = useState(true);
  /** The newest line when somebody scrolled up. */
  const [left_at, setLeftAt] = useState(0);
  const onFollow = useCallback(
    (next: boolean) => {
      setFollows(next);
      if (!next) setLeftAt(lines.last);
    },
    [lines],
  );

  const [wanted, setWanted] = useState<Wanted | null>(null);
  const found = useFound(lines, wanted);
  const [current, setCurrent] = useState<number | null>(null);
  const find = useRef<{ focus(): void }>(null);
  const pattern = useMemo(
    () => (wanted?.text ? patternOf(wanted.text, { regex: wanted.regex, case: wanted.exact }).pattern : null),
    [wanted],
  );
  const goTo = (n: number | null) => {
    setCurrent(n);
    if (n !== null) list.current?.show(n);
  };
  const go = (direction: 1 | -1) =>
    goTo(step(found.lines, current ?? (list.current?.top() ?? 1) - 1, direction));
  const openFind = () => {
    if (wanted) find.current?.focus();
    else setWanted({ text: '', regex: false, exact: false });
  };
  const look = (next: Wanted) => {
    setWanted(next);
    setCurrent(null);
  };
  // The first match from where one reads on is gone to; the next ones are asked for.
  const has_match = found.lines.length > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each thing that is looked for
  useEffect(() => {
    if (has_match && current === null) go(1);
  }, [has_match, found.wanted]);

  useKeys({ find: openFind, end: () => list.current?.toEnd() });
  useStepKeys(wanted ? go : null);

  const loaded = log.view.last_seq >= agent.last_seq;
  // What was there when one came is not new.
  const [came_at, setCameAt] = useState<number | null>(null);
  if (loaded && came_at === null) setCameAt(lines.last);
  const fresh = came_at === null ? 0 : lines.last - Math.max(left_at, came_at);
  if (lines.last === 0) {
    if (log.failure !== null) return <Failed error={new Error(log.failure)} />;
    if (!loaded) return <Skeleton rows={12} height="h-4" />;
    return (
      <Empty
        title={agent.status === 'running' ? 'Nothing printed yet.' : 'This agent printed nothing.'}
        cli={`svc agents logs ${agent.id}`}
      />
    );
  }
  return (
    <>
      <div className="flex shrink-0 flex-wrap items-center gap-1 border-line border-b px-3 py-1">
        <Button look="quiet" icon={<Search aria-hidden />} onClick={openFind}>
          Find
        </Button>
        <GoTo
          onGo={(next) => {
            setRange(next);
            list.current?.show(next.from);
          }}
        />
        <IconButton
          label="Wrap lines"
          aria-pressed={options.wrap}
          icon={<WrapText aria-hidden />}
          className={options.wrap ? 'bg-surface text-text!' : ''}
          onClick={() => setOptions({ wrap: !options.wrap })}
        />
        <IconButton
          label="Show times"
          aria-pressed={options.times}
          icon={<Clock aria-hidden />}
          className={options.times ? 'bg-surface text-text!' : ''}
          onClick={() => setOptions({ times: !options.times })}
        />
        <span className="ml-auto text-muted text-sm">
          {lines.first > 1 && `from line ${lines.first.toLocaleString('en')} · `}
          {lines.last.toLocaleString('en')} {lines.last === 1 ? 'line' : 'lines'}
        </span>
        <Download agent={agent} />
      </div>
      {wanted && (
        <FindBar
          ref={find}
          wanted={wanted}
          onChange={look}
          found={found}
          current={current}
          onStep={go}
          onClose={() => {
            setWanted(null);
            setCurrent(null);
          }}
        />
      )}
      {range && <ChosenBar lines={lines} range={range} onClear={() => setRange(null)} />}
      <div className="relative flex min-h-0 flex-1 flex-col">
        <LinesList
          ref={list}
          lines={lines}
          version={version}
          options={options}
          range={range}
          onChoose={(n, extend) => setRange(extend ? reaching(range, n) : { from: n, to: n })}
          pattern={pattern}
          current={current}
          onFollow={onFollow}
          end={<EndLine agent={agent} />}
        />
        {!follows && (
          <Button
            className="absolute right-4 bottom-3 min-w-28 shadow-overlay"
            icon={<ArrowDown aria-hidden />}
            title="End"
            onClick={() => list.current?.toEnd()}
          >
            {fresh > 0 ? `${fresh.toLocaleString('en')} new` : 'To the end'}
          </Button>
        )}
      </div>
      {log.failure !== null && (
        <p role="alert" className="border-line border-t px-3 py-1 text-failed">
          {log.failure}
        </p>
      )}
    </>
  );
}

/** The chosen lines stand in the address; a line that one comes with is shown as soon as it is there. */
function useRange(
  list: { current: ListHandle | null },
  last: number,
): [Range | null, (range: Range | null) => void] {
  const hash = useLocation({ select: (location) => location.hash });
  const navigate = useNavigate();
  const range = useMemo(() => (hash.startsWith('L') ? rangeOf(hash) : null), [hash]);
  const shown = useRef('');
  const is_there = range !== null && last >= range.from;
  useEffect(() => {
    if (!is_there || shown.current === hash) return;
    shown.current = hash;
    list.current?.show(range.from);
  }, [is_there, hash, range, list]);
  const set = (next: Range | null) => {
    const fragment = next ? fragmentOf(next) : '';
    // What was just clicked is seen already.
    shown.current = fragment;
    void navigate({
      to: '.',
      search: true,
      hash: fragment,
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  };
  return [range, set];
}

function GoTo({ onGo }: { onGo: (range: Range) => void }) {
  const [text, setText] = useState('');
  const range = rangeOf(text);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (range) onGo(range);
  };
  return (
    <form onSubmit={submit}>
      <input
        aria-label="Go to line, or lines such as 200-240"
        aria-invalid={(text !== '' && !range) || undefined}
        value={text}
        onChange={(event) => setText(event.target.value)}
        placeholder="Line"
        autoComplete="off"
        className={`${inputClass} w-20! text-sm`}
      />
    </form>
  );
}

/** Keys of this tab, wherever the focus is on the page. */
function useKeys(acts: { find: () => void; end: () => void }) {
  const held = useRef(acts);
  held.current = acts;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { find, end } = held.current;
      const in_find = event.target instanceof Element && event.target.closest('search') !== null;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'f') {
        // Pressed again, it is the browser's.
        if (in_find || document.querySelector('[role="dialog"]')) return;
        event.preventDefault();
        find();
        return;
      }
      if (isTyping(event) || hasModifier(event)) return;
      if (event.key === 'End') {
        event.preventDefault();
        end();
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}
