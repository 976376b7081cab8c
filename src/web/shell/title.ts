/** Shows what waits for the user in the tab: their number in its title and in the app badge, and an amber dot in its icon. */
import { useEffect } from 'react';
import { dot, LANE_WIDTH, lanes, MARK_RADIUS, MARK_SIZE, markColors } from '../ui/mark-shape.ts';

let screen = '';
let waiting = 0;

function write(): void {
  const name = screen ? `${screen} · svc` : 'svc';
  document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
}

export function useTitle(count: number): void {
  useEffect(() => {
    waiting = count;
    write();
    drawIcon(count > 0);
    const app = navigator as Navigator & {
      setAppBadge?(n: number): Promise<void>;
      clearAppBadge?(): Promise<void>;
    };
    // Only installed apps have a badge.
    (count > 0 ? app.setAppBadge?.(count) : app.clearAppBadge?.())?.catch(() => {});
  }, [count]);
}

/** Sets the screen's name in the tab's title. */
export function useScreenTitle(name: string): void {
  useEffect(() => {
    screen = name;
    write();
    return () => {
      screen = '';
      write();
    };
  }, [name]);
}

let is_drawn = false;

function drawIcon(is_waiting: boolean): void {
  // The page's own icon is the one while nothing waits.
  if (!is_waiting && !is_drawn) return;
  is_drawn = true;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.scale(64 / MARK_SIZE, 64 / MARK_SIZE);
  pen.fillStyle = markColors.square;
  pen.beginPath();
  pen.roundRect(0, 0, MARK_SIZE, MARK_SIZE, MARK_RADIUS);
  pen.fill();
  pen.strokeStyle = markColors.lane;
  pen.lineWidth = LANE_WIDTH;
  pen.lineCap = 'round';
  for (const { y, from, to } of lanes) {
    pen.beginPath();
    pen.moveTo(from, y);
    pen.lineTo(to, y);
    pen.stroke();
  }
  pen.fillStyle = is_waiting ? markColors.waiting : markColors.lane;
  pen.beginPath();
  // Larger than in the page: an icon of a tab is small.
  pen.arc(dot.x, dot.y, is_waiting ? dot.radius * 1.7 : dot.radius, 0, Math.PI * 2);
  pen.fill();
  let link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (!link) {
    link = document.createElement('link');
    link.rel = 'icon';
    document.head.append(link);
  }
  link.href = canvas.toDataURL('image/png');
}
