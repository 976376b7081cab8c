/** The version of svc. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from './program-files.ts';

export const version: string = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')).version;
