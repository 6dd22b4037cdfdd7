import type { Command } from 'commander';
import { type JobLog, plainText } from '../../../contracts/index.js';
import type { Context, Run } from '../context.js';
import { NamedArgument } from '../names.js';
import { count, whole } from './arguments.js';

interface LogsOptions {
  follow?: boolean;
  rank?: number;
  lines?: number;
}

/** The command for log lines of ranks. */
export function addLogCommands(program: Command, run: Run): void {
  program
    .command('logs')
    .summary("show the log lines of a job's ranks")
    .addArgument(new NamedArgument('job'))
    .option('-f, --follow', 'follow new lines until the job ends; Ctrl-C leaves the job running')
    .option('-r, --rank <rank>', 'only this rank', whole)
    .option('-n, --lines <count>', 'only the last lines', count)
    .action(run(logs));
}

async function logs(context: Context, id: string, { follow, rank, lines }: LogsOptions): Promise<void> {
  const { client, signal } = context;
  if (follow) {
    // The terminal has printed ^C in the middle of a line.
    const begin = context.interactive ? '\n' : '';
    context.interruptMessage = `${begin}the job keeps running; show its log again with: zerofleet logs ${id} -f`;
  }
  const filter = rank === undefined ? {} : { rank };
  const kept: JobLog[] = [];
  let last: string | undefined;
  for await (const line of client.jobs.logs(id, filter)) {
    last = line.position;
    if (lines === undefined) show(context, line);
    else kept.push(line);
    if (kept.length > (lines ?? 0)) kept.shift();
  }
  for (const line of kept) show(context, line);
  if (!follow) return;
  for await (const line of client.jobs.followLogs(id, { ...filter, after: last, signal }))
    show(context, line);
}

function show(context: Context, line: JobLog): void {
  const { at, rank, stream, message } = line;
  const who = `${rank === null ? 'job' : `rank ${rank}`}${stream === 'stdout' ? '' : ` ${stream}`}`;
  // Lines of any server are stripped of terminal commands.
  context.show(line, () => `${at.slice(11, 23)}  ${who.padEnd(13)}  ${plainText(message)}`);
}
