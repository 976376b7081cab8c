/** Shows the number of items that wait for the user in the tab's title, its icon and the app badge. */
import { useEffect } from 'react';

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
    drawIcon(count);
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

function drawIcon(count: number): void {
  // The page's own icon is the one without a number.
  if (count === 0 && !is_drawn) return;
  is_drawn = true;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.fillStyle = '#1d5fd1';
  pen.beginPath();
  pen.roundRect(0, 0, 64, 64, 14);
  pen.fill();
  pen.fillStyle = '#ffffff';
  pen.font = 'bold 34px sans-serif';
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText('s', 32, 32);
  if (count > 0) {
    pen.fillStyle = '#f2b84b';
    pen.beginPath();
    pen.arc(46, 18, 18, 0, Math.PI * 2);
    pen.fill();
    pen.fillStyle = '#0e1013';
    pen.font = 'bold 24px sans-serif';
    pen.fillText(count > 9 ? '9+' : String(count), 46, 19);
  }
  let link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (!link) {
    link = document.createElement('link');
    link.rel = 'icon';
    document.head.append(link);
  }
  link.href = canvas.toDataURL('image/png');
}
