import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ERROR_CATALOGUE, type ErrorCode, type Job, type JobSpec, type Problem } from '../contracts/index.js';
import { resolveSpec } from '../job-document/index.js';
import { projectRoot } from '../platform/process/root.js';
import { loadContract } from './operations.js';
import { ContractReader } from './testing/contract-reader.js';

const contract = loadContract();
const reader = new ContractReader(contract);

interface Examples<T> {
  [name: string]: { value: T };
}
interface ContractWithExamples {
  paths: Record<
    string,
    { post: { requestBody: { content: { 'application/json': { examples: Examples<unknown> } } } } }
  >;
  components: { schemas: { Job: { examples: [Job] }; PlannedJobSpec: { examples: [Job['spec']] } } };
}
const { paths, components } = contract.document as unknown as ContractWithExamples;

function examplesOf<T>(path: string): [string, T][] {
  const examples = paths[path]?.post.requestBody.content['application/json'].examples ?? {};
  return Object.entries(examples).map(([name, { value }]) => [name, value as T]);
}

/** Schema and rule violations of a document. */
function problems(spec: JobSpec): unknown[] {
  const { errors } = resolveSpec(spec, null, { validate: contract.jobSpecErrors });
  return [...contract.jobSpecErrors(spec), ...errors];
}

t.test('the examples of the contract are accepted', async (t) => {
  const jobs = examplesOf<JobSpec>('/v1/jobs');
  t.ok(jobs.length >= 4);
  for (const [name, spec] of jobs) t.same(problems(spec), [], name);
  for (const [name, { spec }] of examplesOf<{ spec: JobSpec }>('/v1/estimate'))
    t.same(problems(spec), [], name);
});

t.test('the example of a job has the resolved document of the example request', async (t) => {
  const [, spec] = examplesOf<JobSpec>('/v1/jobs').find(([name]) => name === 'two_ranks') ?? [];
  if (spec === undefined) throw new Error('no such example');
  const { Job, PlannedJobSpec } = components.schemas;
  t.same(resolveSpec(spec, null).spec, Job.examples[0].spec);
  t.same(PlannedJobSpec.examples[0], Job.examples[0].spec, 'so has the example of a dry run');
});

t.test('every JSON body and every JSON answer has examples, and they fit its schema', async (t) => {
  for (const { id, body, answers } of reader.operations) {
    for (const [status, { content = {} }] of [['request', body ?? {}] as const, ...answers]) {
      for (const [name, media] of Object.entries(content)) {
        if (!name.endsWith('json') || media.schema === undefined) continue;
        const examples = reader.examplesOf(media);
        t.not(examples.length, 0, `${id} ${status}`);
        for (const example of examples)
          t.equal(reader.problems(media.schema, example), null, `${id} ${status}`);
      }
    }
  }
});

t.test('the example of an error has a code of its status', async (t) => {
  for (const { id, answers } of reader.operations) {
    for (const [status, { content = {} }] of answers) {
      for (const example of reader.examplesOf(content['application/problem+json'] ?? {}) as Problem[]) {
        const { title, retryable } = ERROR_CATALOGUE[example.code as ErrorCode];
        const expected = {
          type: `urn:zerofleet:error:${example.code}`,
          status: Number(status),
          title,
          retryable,
        };
        t.match(example, expected, `${id} ${status}`);
        t.equal(ERROR_CATALOGUE[example.code as ErrorCode].status, Number(status));
      }
    }
  }
});

t.test('the job documents of the documentation are accepted', async (t) => {
  for (const page of ['job-spec.md', 'deepspeed.md']) {
    const text = readFileSync(join(projectRoot(), 'docs', page), 'utf8');
    const documents = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
      ([, json = '']) => JSON.parse(json) as JobSpec,
    );
    t.ok(documents.length > 0, page);
    for (const document of documents) t.same(problems(document), [], page);
  }
});
