// `terraform test`: each run of infra/terraform/tests asserts one property of the resources with a mocked provider.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Processes: each starts with two seconds of reading the provider's schemas. */
const PROCESSES = 2;

/** Parses runs and diagnostics from the lines of `terraform test -json`. */
function readReport(output) {
  const results = [];
  const problems = new Map();
  for (const line of output.split('\n')) {
    if (!line.startsWith('{')) continue;
    const message = JSON.parse(line);
    const key = `${message['@testfile'] ?? ''} ${message['@testrun'] ?? ''}`;
    if (message.type === 'diagnostic') {
      const { summary, detail, range } = message.diagnostic;
      const location = range ? ` (${range.filename}:${range.start.line})` : '';
      problems.set(key, `${problems.get(key) ?? ''}${summary}${location}: ${detail}\n`);
    }
    if (message.type === 'test_run' && message.test_run.progress === 'complete') {
      const { path, run, status } = message.test_run;
      results.push({ file: path, run, status, key: `${path} ${run}` });
    }
  }
  return { results, problems };
}

/** `tests/storage.tftest.hcl`, `nothing_is_public` as `storage: nothing is public`. */
const nameOf = ({ file, run }) =>
  `${file.replace(/^tests\/|\.tftest\.hcl$/g, '')}: ${run.replaceAll('_', ' ')}`;

async function runFiles(workspace, files) {
  const filters = files.map((file) => `-filter=${join('tests', file)}`);
  const { code, output } = await workspace.terraform('.', ['test', '-json', ...filters]);
  const { results, problems } = readReport(output);
  const lines = results.map((result) => ({
    name: nameOf(result),
    problem:
      result.status === 'pass' ? null : (problems.get(result.key) ?? `ended as ${result.status}`).trim(),
  }));
  if (code !== 0 && lines.every(({ problem }) => problem === null))
    lines.push({
      name: `terraform test ${files.join(' ')}`,
      problem: [...problems.values()].join('') || output.trim(),
    });
  return lines;
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace after `initRoot`
 * @returns {Promise<import('./static-checks.mjs').Result[]>} one for each run
 */
export async function testProperties(workspace) {
  const files = readdirSync(join(workspace.source, 'tests')).filter((name) => name.endsWith('.tftest.hcl'));
  const groups = Array.from({ length: PROCESSES }, (_, group) =>
    files.filter((_, index) => index % PROCESSES === group),
  );
  return (await Promise.all(groups.map((group) => runFiles(workspace, group)))).flat();
}
