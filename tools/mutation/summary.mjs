// Summarizes a report of StrykerJS as text.

/** Minimum share of killed mutants per area. */
export const MIN_KILLED_SHARE = 0.9;

const SURVIVED = ['Survived', 'NoCoverage'];

/**
 * @param report in the form of mutation-testing-report-schema
 * @returns {{lines: string[], caught: number}} figures of each file and of all, then each surviving mutant
 */
export function summaryOf({ files }) {
  const all = Object.values(files).flatMap(({ mutants }) => mutants);
  const lines = Object.entries(files).map(([path, { mutants }]) => `  ${path}: ${figuresOf(mutants).text}`);
  const survivors = Object.entries(files).flatMap(([path, { source, mutants }]) =>
    mutants
      .filter(({ status }) => SURVIVED.includes(status))
      .map((mutant) => `  ${path}:${mutant.location.start.line} ${changeOf(source, mutant)}`),
  );
  const { text, caught } = figuresOf(all);
  return { lines: [...lines, `  all: ${text}`, ...survivors], caught };
}

function figuresOf(mutants) {
  const count = (...statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
  const killed = count('Killed', 'RuntimeError');
  const timeout = count('Timeout');
  const missed = count(...SURVIVED);
  const total = killed + timeout + missed;
  const caught = total === 0 ? 1 : (killed + timeout) / total;
  const text = `${total} mutants, ${killed} killed, ${timeout} timeouts, ${count('Survived')} survived, ${count('NoCoverage')} not covered: ${(100 * caught).toFixed(1)} %`;
  return { text, caught };
}

/** `old code -> new code`, on one line. */
function changeOf(source, { location: { start, end }, replacement }) {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1);
  lines[0] = lines[0].slice(start.column - 1);
  const short = (text) => text.replaceAll(/\s+/g, ' ').slice(0, 80);
  return `${short(lines.join(' '))} -> ${short(replacement ?? '')}`;
}
