/** A changed file in the list of all: its header, which stays in view, and its diff, which is read when it comes near. */
import { ArrowLeft, ChevronDown, ChevronRight } from 'lucide-react';
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { escapeHidden } from '../../../../core/visible.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { IconButton } from '../../../ui/button.tsx';
import { PathText } from '../../../ui/path-text.tsx';
import type { Comment } from './comments.ts';
import { Counts } from './counts.tsx';
import { FileDiff } from './file-diff.tsx';
import type { ChangedFile } from './parsed.ts';
import type { ChangeComments } from './stored.ts';
import type { View } from './use-diff-view.ts';

/** How far below the screen a diff is read. */
const NEAR = '0px 0px 800px 0px';
const LINE_PX = 24;
/** Lines around the changed ones, and the line above them. */
const CONTEXT_LINES = 8;
const ESTIMATE_MAX_PX = 4_000;

interface FileSectionProps {
  agent: AgentRecord;
  path: string;
  /** Its entry in the list of files; undefined if it is no longer changed. */
  listed: ChangedFile | undefined;
  scroller: RefObject<HTMLElement | null>;
  view: View;
  is_viewed: boolean;
  onView: (viewed: boolean) => void;
  comments: readonly Comment[];
  onComments: ChangeComments;
  /** Returns to the list of files on narrow screens. */
  onBack: () => void;
}

export function FileSection(props: FileSectionProps) {
  const { agent, path, listed, scroller, view, is_viewed, onView, comments, onComments, onBack } = props;
  const section = useRef<HTMLElement>(null);
  const is_near = useNear(section, scroller);
  // A viewed file is closed, but can be opened again.
  const [opened, setOpened] = useState<boolean | null>(null);
  const is_open = opened ?? !is_viewed;
  useStayInView(is_open, section, scroller);
  const Chevron = is_open ? ChevronDown : ChevronRight;
  const estimate_px = estimateHeight(listed);
  const shown_path = escapeHidden(path);
  return (
    <article
      ref={section}
      aria-label={shown_path}
      data-path={path}
      className="[content-visibility:auto] [&:not(:last-child)]:border-line [&:not(:last-child)]:border-b"
      style={{ containIntrinsicHeight: `auto ${is_open ? estimate_px + 36 : 36}px` }}
    >
      <header className="sticky top-0 z-10 flex min-h-9 items-center gap-2 border-line border-b bg-ground px-2">
        <IconButton label="Files" className="md:hidden" icon={<ArrowLeft aria-hidden />} onClick={onBack} />
        <h2 className="min-w-0 flex-1 font-mono text-sm">
          <button
            type="button"
            aria-expanded={is_open}
            aria-label={shown_path}
            title={shown_path}
            onClick={() => setOpened(!is_open)}
            className="tap flex max-w-full items-center gap-1 rounded text-left"
          >
            <Chevron aria-hidden className="size-3.5 shrink-0 text-muted" />
            <PathText path={shown_path} />
          </button>
        </h2>
        {listed && (
          <>
            <Counts additions={listed.additions} deletions={listed.deletions} />
            <label className="tap inline-flex cursor-pointer items-center gap-1.5 px-1 text-sm">
              <input
                type="checkbox"
                className="size-4"
                checked={is_viewed}
                onChange={(event) => {
                  setOpened(null);
                  onView(event.target.checked);
                }}
              />
              Viewed
            </label>
          </>
        )}
      </header>
      {is_open && (
        <FileDiff
          {...{
            agent,
            path,
            view,
            scroller,
            is_near,
            estimate_px,
            comments,
            onComments,
          }}
        />
      )}
    </article>
  );
}

/** Whether the section is on the screen or will be soon. */
function useNear(section: RefObject<HTMLElement | null>, scroller: RefObject<HTMLElement | null>): boolean {
  const [is_near, setNear] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => setNear(entry!.isIntersecting), {
      root: scroller.current,
      rootMargin: NEAR,
    });
    observer.observe(section.current!);
    return () => observer.disconnect();
  }, [section, scroller]);
  return is_near;
}

/** A section that closes while its beginning is above the screen would leave the reader somewhere else. */
function useStayInView(
  is_open: boolean,
  section: RefObject<HTMLElement | null>,
  scroller: RefObject<HTMLElement | null>,
): void {
  const before = useRef(is_open);
  useLayoutEffect(() => {
    const [own, box] = [section.current, scroller.current];
    const closes = before.current && !is_open;
    before.current = is_open;
    if (!closes || !own || !box) return;
    if (own.offsetTop < box.scrollTop) box.scrollTop = own.offsetTop;
  }, [is_open, section, scroller]);
}

function estimateHeight(listed: ChangedFile | undefined): number {
  const lines = (listed?.additions ?? 0) + (listed?.deletions ?? 0) + CONTEXT_LINES;
  return Math.min(ESTIMATE_MAX_PX, lines * LINE_PX);
}
