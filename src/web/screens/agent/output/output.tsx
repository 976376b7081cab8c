/** The Output tab: numbered lines, followed live, with a search and a URL for every line. */
import { useLocation, useNavigate } from '@tanstack/react-router';
import { ArrowDownToLine, ChevronDown, ChevronUp, Clock, Search, WrapText } from 'lucide-react';
import { type FormEvent, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { AgentRecord } from '../../../api/queries.ts';
import { useMarkSeen } from '../../../api/seen.ts';
import { type AgentLog, useAgentLog } from '../../../live/agent-log.ts';
import { useStepKeys } from '../../../shell/step-keys.ts';
import { toPattern } from '../../../transcript/find.ts';
import type { Lines as LogLines } from '../../../transcript/lines.ts';
import { Button, IconButton } from '../../../ui/button.tsx';
import { inputClass } from '../../../ui/field.tsx';
import { hasModifier, isOverlayOpen, isTyping, MOD } from '../../../ui/keys.ts';
import { useNarrow } from '../../../ui/media.ts';
import { Empty, Failed, NotLive, Skeleton } from '../../../ui/states.tsx';
import { ToEnd } from '../../../ui/to-end.tsx';
import { ChosenBar } from './chosen-bar.tsx';
import { Download } from './download.tsx';
import { EndLine } from './end-line.tsx';
import { errorQuery } from './errors.ts';
import { FailureBar } from './failure-bar.tsx';
import { FindBar } from './find-bar.tsx';
import { type FindQuery, step } from './finder.ts';
import { LinesList, type ListHandle } from './lines-list.tsx';
import { type Options, useOptions } from './options.ts';
import { formatRange, parseRange, type Range, reaching } from './range.ts';
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
  const [options, setOptions] = useOptions();
  const list = useRef<ListHandle>(null);
  const [range, setRange] = useRange(list, lines.last);
  const errors = useErrors(lines, list);
  const find = useFind(lines, list, errors.go);
  const loaded = log.view.last_seq >= agent.last_seq;
  const { follows, onFollow, unseen } = useFollowing(lines, loaded);
  useMarkSeen(agent.id, log.view.last_seq, follows);
  useKeys({ find: find.open, end: () => list.current?.toEnd() });

  if (lines.last === 0) return <NoLines agent={agent} log={log} loaded={loaded} />;
  return (
    <>
      <FailureBar agent={agent} onFirstError={errors.count > 0 ? errors.first : null} />
      <Toolbar
        agent={agent}
        lines={lines}
        began_before={log.view.began_before}
        errors={errors}
        options={options}
        onOptions={setOptions}
        following={agent.status === 'running' ? follows : null}
        onFollowing={(next) => (next ? list.current?.toEnd() : list.current?.stay())}
        onFind={find.open}
        onGo={(next) => {
          setRange(next);
          list.current?.show(next.from);
        }}
      />
      {find.bar}
      {range && <ChosenBar {...{ lines, range, loaded }} onClear={() => setRange(null)} />}
      <div className="relative flex min-h-0 flex-1 flex-col">
        <LinesList
          ref={list}
          lines={lines}
          version={lines.version}
          options={options}
          range={range}
          onChoose={(n, extend) => setRange(extend ? reaching(range, n) : { from: n, to: n })}
          pattern={find.pattern}
          current={find.current ?? errors.current}
          onFollow={onFollow}
          end={<EndLine agent={agent} />}
        />
        {!follows && (
          <ToEnd onClick={() => list.current?.toEnd()}>
            {unseen > 0 ? `${unseen.toLocaleString('en')} new` : 'Jump to latest'}
          </ToEnd>
        )}
      </div>
      {log.failure !== null && <NotLive reason={log.failure} retry={log.retry} />}
    </>
  );
}

function NoLines({ agent, log, loaded }: { agent: AgentRecord; log: AgentLog; loaded: boolean }) {
  if (log.failure !== null) return <Failed error={new Error(log.failure)} retry={log.retry} />;
  if (!loaded) return <Skeleton rows={12} height="h-4" />;
  return (
    <>
      <FailureBar agent={agent} onFirstError={null} />
      <Empty
        title={emptyTitles[agent.status] ?? 'This agent printed nothing.'}
        cli={`svc logs ${agent.id}`}
      />
    </>
  );
}

const emptyTitles: Partial<Record<AgentRecord['status'], string>> = {
  created: 'Not started yet. The agent’s output appears here.',
  running: 'No output yet. The agent’s output appears here.',
};

/** Whether the list follows the end, and how many lines were added since the user left it or opened the page. */
function useFollowing(lines: LogLines, loaded: boolean) {
  const [follows, setFollows] = useState(true);
  const [left_at, setLeftAt] = useState(0);
  const onFollow = useCallback(
    (next: boolean) => {
      setFollows(next);
      if (!next) setLeftAt(lines.last);
    },
    [lines],
  );
  // Lines from before the page was opened are not new.
  const [opened_at, setOpenedAt] = useState<number | null>(null);
  if (loaded && opened_at === null) setOpenedAt(lines.last);
  const unseen = opened_at === null ? 0 : lines.last - Math.max(left_at, opened_at);
  return { follows, onFollow, unseen };
}

interface Errors {
  count: number;
  /** The line that the list should show. */
  current: number | null;
  first: () => void;
  go: (direction: 1 | -1) => void;
}

/** The lines that report errors, for stepping through them. */
function useErrors(lines: LogLines, list: RefObject<ListHandle | null>): Errors {
  const found = useFound(lines, errorQuery);
  const [current, setCurrent] = useState<number | null>(null);
  const show = (n: number | null | undefined) => {
    setCurrent(n ?? null);
    if (n != null) list.current?.show(n);
  };
  return {
    count: found.lines.length,
    current,
    first: () => show(found.lines[0]),
    go: (direction) => show(step(found.lines, current ?? (list.current?.top() ?? 1) - 1, direction)),
  };
}

/** The search in the output: its bar, and the match that the list should show. `goError`: what `n` and `p` do without one. */
function useFind(lines: LogLines, list: RefObject<ListHandle | null>, goError: (direction: 1 | -1) => void) {
  const [query, setQuery] = useState<FindQuery | null>(null);
  const found = useFound(lines, query);
  // With its query: results of the query before may arrive after a change.
  const [at, setAt] = useState<{ line: number | null; query: FindQuery | null } | null>(null);
  const current = at?.query === query ? at.line : null;
  const bar = useRef<{ focus(): void }>(null);
  const pattern = useMemo(
    () => (query?.text ? toPattern(query.text, { regex: query.regex, case: query.exact }).pattern : null),
    [query],
  );
  const go = (direction: 1 | -1) => {
    const line = step(found.lines, current ?? (list.current?.top() ?? 1) - 1, direction);
    setAt({ line, query: found.query });
    if (line !== null) list.current?.show(line);
  };
  const open = () => {
    if (query) bar.current?.focus();
    else setQuery({ text: '', regex: false, exact: false });
  };
  // Go to the first match from the current position; the user asks for the next ones.
  const has_match = found.lines.length > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each query
  useEffect(() => {
    if (has_match && current === null) go(1);
  }, [has_match, found.query]);
  useStepKeys(query ? go : goError);
  return {
    open,
    pattern,
    current,
    bar: query && (
      <FindBar
        ref={bar}
        query={query}
        onChange={setQuery}
        found={found}
        current={current}
        onStep={go}
        onClose={() => setQuery(null)}
      />
    ),
  };
}

function Toolbar({
  agent,
  lines,
  began_before,
  errors,
  options,
  onOptions,
  following,
  onFollowing,
  onFind,
  onGo,
}: {
  agent: AgentRecord;
  lines: LogLines;
  /** Whether the log has earlier output, which the page did not read: lines are numbered from the first that it read. */
  began_before: boolean;
  errors: Errors;
  options: Options;
  onOptions: (change: Partial<Options>) => void;
  /** Null if no more lines come. */
  following: boolean | null;
  onFollowing: (following: boolean) => void;
  onFind: () => void;
  onGo: (range: Range) => void;
}) {
  return (
    // On phones all of it fits in one row.
    <div className="flex shrink-0 flex-wrap items-center gap-1 border-line border-b px-3 py-1">
      <Button variant="quiet" icon={<Search aria-hidden />} title={FIND_KEYS} onClick={onFind}>
        <span className="max-sm:sr-only">Find</span>
      </Button>
      <GoTo onGo={onGo} className={errors.count > 0 ? 'max-sm:hidden' : undefined} />
      <IconButton
        label="Wrap lines"
        aria-pressed={options.wrap}
        icon={<WrapText aria-hidden />}
        className={options.wrap ? 'bg-surface text-text!' : ''}
        onClick={() => onOptions({ wrap: !options.wrap })}
      />
      <IconButton
        label="Show timestamps"
        aria-pressed={options.times}
        icon={<Clock aria-hidden />}
        className={options.times ? 'bg-surface text-text!' : ''}
        onClick={() => onOptions({ times: !options.times })}
      />
      {following !== null && (
        <Button
          variant="quiet"
          role="switch"
          aria-checked={following}
          title={following ? 'Stays at the newest line' : 'Stays where you are'}
          icon={<ArrowDownToLine aria-hidden />}
          className={following ? 'bg-surface text-text!' : ''}
          onClick={() => onFollowing(!following)}
        >
          <span className="max-sm:sr-only">Following</span>
        </Button>
      )}
      {errors.count > 0 && <ErrorStepper errors={errors} />}
      <span className="ml-auto text-muted text-sm max-sm:sr-only">
        {began_before && 'without earlier output · '}
        {lines.first > 1 && `from line ${lines.first.toLocaleString('en')} · `}
        {lines.last.toLocaleString('en')} {lines.last === 1 ? 'line' : 'lines'}
      </span>
      <span className="max-sm:ml-auto">
        <Download agent={agent} />
      </span>
    </div>
  );
}

const FIND_KEYS = MOD === '⌘' ? '⌘F' : `${MOD}+F`;

function ErrorStepper({ errors: { count, go } }: { errors: Errors }) {
  const text = `${count.toLocaleString('en')} ${count === 1 ? 'error' : 'errors'}`;
  if (useNarrow())
    return (
      <Button
        variant="quiet"
        aria-label={`${text}, next error`}
        onClick={() => go(1)}
        className="text-failed!"
      >
        {text} <ChevronDown aria-hidden />
      </Button>
    );
  return (
    <span className="inline-flex items-center">
      <span className="px-1 text-failed">{text}</span>
      <IconButton label="Previous error (p)" icon={<ChevronUp aria-hidden />} onClick={() => go(-1)} />
      <IconButton label="Next error (n)" icon={<ChevronDown aria-hidden />} onClick={() => go(1)} />
    </span>
  );
}

/** The selected lines, which the page's URL holds. They are shown as soon as they are loaded. */
function useRange(
  list: { current: ListHandle | null },
  last: number,
): [Range | null, (range: Range | null) => void] {
  const hash = useLocation({ select: (location) => location.hash });
  const navigate = useNavigate();
  const range = useMemo(() => (hash.startsWith('L') ? parseRange(hash) : null), [hash]);
  const shown = useRef('');
  const is_there = range !== null && last >= range.from;
  useEffect(() => {
    if (!is_there || shown.current === hash) return;
    shown.current = hash;
    list.current?.show(range.from);
  }, [is_there, hash, range, list]);
  const set = (next: Range | null) => {
    const fragment = next ? formatRange(next) : '';
    // A line that was just clicked is visible already.
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

function GoTo({ onGo, className }: { onGo: (range: Range) => void; className: string | undefined }) {
  const [text, setText] = useState('');
  const range = parseRange(text);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (range) onGo(range);
  };
  return (
    <form onSubmit={submit} className={className}>
      <input
        aria-label="Go to line, or lines such as 200-240"
        aria-invalid={(text !== '' && !range) || undefined}
        value={text}
        onChange={(event) => setText(event.target.value)}
        placeholder="Go to line"
        autoComplete="off"
        className={`${inputClass} w-24! text-sm`}
      />
    </form>
  );
}

/** Keyboard shortcuts of this tab. */
function useKeys(acts: { find: () => void; end: () => void }) {
  const held = useRef(acts);
  held.current = acts;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { find, end } = held.current;
      const in_find = event.target instanceof Element && event.target.closest('search') !== null;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'f') {
        // Pressed again, it opens the browser's own find.
        if (in_find || isOverlayOpen()) return;
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
