/** Metrics of the plane's machine: its disk, and the certificate that it shows to nodes and other planes. */
import { X509Certificate } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { PlaneTrust } from '../link/trust/plane-trust.ts';
import type { Metrics } from '../server/metrics.ts';

export function registerDiskMetrics(metrics: Metrics, data_dir: string): void {
  metrics.gauge('svc_disk_free_bytes', 'Free space on the disk of data_dir, in bytes.', async () => {
    const { bavail, bsize } = await statfs(data_dir);
    return bavail * bsize;
  });
  metrics.gauge('svc_disk_size_bytes', 'Size of the disk of data_dir, in bytes.', async () => {
    const { blocks, bsize } = await statfs(data_dir);
    return blocks * bsize;
  });
}

/** Registers nothing if the plane has no certificate. */
export function registerCertificateMetrics(metrics: Metrics, trust: Pick<PlaneTrust, 'identity'>): void {
  if (trust.identity() === null) return;
  metrics.gauge(
    'svc_certificate_expires_seconds',
    'When the certificate for nodes and other control planes expires, in Unix seconds. svc renews its own; yours need a new file.',
    () => {
      const identity = trust.identity();
      return identity === null ? 0 : new X509Certificate(identity.cert).validToDate.getTime() / 1000;
    },
  );
}
