// A made-up machine: runs the scripts of a worker's first start in a directory of its own. The programs in it write
// down how they were called, fail as often as they are told to, and print what they are told to.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { capture } from '../../bootstrap/command.mjs';

const PROGRAMS = [
  ...['aws', 'blkid', 'curl', 'dnf', 'docker', 'lsblk', 'mdadm', 'mkfs.xfs', 'mount', 'mountpoint'],
  ...['cloud-init', 'nvidia-smi', 'sleep', 'systemctl'],
];
/** Directories to which the scripts write. */
const PLACES =
  /(?<![\w/.])\/(?=(?:usr\/local|etc\/zerofleet|etc\/systemd|var\/lib\/zerofleet|run\/zerofleet|dev\/infiniband|tmp|home\/ec2-user)\b)/g;

const STUB = `#!/bin/bash
name=\${0##*/}
echo "$name $*" >> "$MACHINE/calls"
left=$(cat "$MACHINE/failures/$name" 2> /dev/null || echo 0)
if ((left > 0)); then
  echo $((left - 1)) > "$MACHINE/failures/$name"
  exit 1
fi
cat "$MACHINE/answers/$name" 2> /dev/null || true
`;
/** Only root may give directories to another user. */
const INSTALL = '#!/bin/bash\nfor place; do :; done\nmkdir -p "$place"\n';

export class Machine {
  dir = mkdtempSync(join(tmpdir(), 'zf-machine-'));

  constructor() {
    for (const name of [
      'bin',
      'failures',
      'answers',
      'usr/local/sbin',
      'etc/systemd/system',
      'run/zerofleet',
      'tmp',
    ])
      mkdirSync(join(this.dir, name), { recursive: true });
    for (const name of PROGRAMS) this.#program(name, STUB);
    this.#program('install', INSTALL);
    // Nothing is mounted, and no file system is there.
    this.fails('mountpoint', 1000);
    this.fails('blkid', 1000);
  }

  #program(name, text) {
    writeFileSync(join(this.dir, 'bin', name), text);
    chmodSync(join(this.dir, 'bin', name), 0o755);
  }

  /** The next `times` calls of a program fail. */
  fails(program, times) {
    writeFileSync(join(this.dir, 'failures', program), `${times}\n`);
  }

  /** Output of a program. */
  prints(program, text) {
    writeFileSync(join(this.dir, 'answers', program), text);
  }

  /** Puts a file there. */
  writes(path, text) {
    writeFileSync(join(this.dir, path), text);
  }

  /** The text of a file of the machine, or null. */
  read(path) {
    const file = join(this.dir, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : null;
  }

  /** Calls since the last time, one line each. */
  calls() {
    const lines = (this.read('calls') ?? '').split('\n').filter(Boolean);
    rmSync(join(this.dir, 'calls'), { force: true });
    return lines.map((line) => line.replaceAll(this.dir, ''));
  }

  /** Runs a script, perhaps one that this machine wrote; its directories are those of this machine. */
  async run(script, args = [], env = {}) {
    const file = join(this.dir, 'script');
    writeFileSync(file, script.replaceAll(this.dir, '').replace(PLACES, `${this.dir}/`));
    return capture(['bash', file, ...args], {
      env: { ...env, MACHINE: this.dir, PATH: `${join(this.dir, 'bin')}:/usr/bin:/bin` },
    });
  }

  remove() {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The calls of one program. */
export const named = (calls, name) => calls.filter((call) => call.split(' ')[0] === name);

/** Collects what is not as expected. */
export class Expectations {
  problems = [];

  equal(title, actual, expected) {
    if (JSON.stringify(actual) !== JSON.stringify(expected))
      this.problems.push(`${title}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  }

  contains(title, text, part) {
    if (!text?.includes(part)) this.problems.push(`${title} has no ${part}: ${text}`);
  }
}
