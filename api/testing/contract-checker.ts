import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Contract } from '../operations.js';
import { ContractReader, type Message } from './contract-reader.js';

/** Characters of what is wrong that are shown, with the reply. */
const SHOWN = 4000;

/** As `inject` answers, or what is made of an answer over a connection. */
export type CheckedReply = Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'> & {
  json(): unknown;
};

/**
 * Checks replies against the contract: the status is one that the operation names, the body fits its schema, and of all headers that the
 * contract knows the reply has those that its response names, and no other.
 */
export class ContractChecker {
  readonly #reader: ContractReader;
  /** Names of all headers that some response has. */
  readonly #headers: ReadonlySet<string>;

  constructor(contract: Contract) {
    this.#reader = new ContractReader(contract);
    const responses = this.#reader.operations.flatMap(({ answers }) =>
      answers.map(([, response]) => response),
    );
    this.#headers = new Set(responses.flatMap(({ headers = {} }) => Object.keys(headers)));
  }

  /** @throws Error that says what the contract does not have; paths outside the contract are not looked at */
  check({ method = 'GET', url }: InjectOptions, reply: CheckedReply): void {
    const path = String(url).split('?', 1)[0] ?? '';
    const { operations } = this.#reader;
    const template = operations.find((candidate) => toPattern(candidate.path).test(path))?.path;
    const operation = operations.find(
      (candidate) => candidate.path === template && candidate.method === method.toUpperCase(),
    );
    if (operation === undefined) return;

    const where = `${method} ${template} → ${reply.statusCode}`;
    const [, response] = operation.answers.find(([status]) => status === String(reply.statusCode)) ?? [];
    if (response === undefined) throw new Error(`${where}: the contract does not name this status`);
    this.#checkHeaders(where, response, reply);
    if (response.content === undefined) {
      if (reply.body !== '') throw new Error(`${where}: the contract names no body`);
      return;
    }
    const mediaType = String(reply.headers['content-type']).split(';', 1)[0] ?? '';
    const content = response.content[mediaType];
    if (content === undefined)
      throw new Error(`${where}: the contract does not name the media type ${mediaType}`);
    if (content.schema === undefined || !mediaType.endsWith('json')) return;
    const problems = this.#reader.problems(content.schema, reply.json());
    if (problems !== null) throw new Error(`${where}: ${problems}\n${reply.body}`.slice(0, SHOWN));
  }

  #checkHeaders(where: string, { headers = {} }: Message, reply: CheckedReply): void {
    for (const name of this.#headers) {
      const sent = reply.headers[name.toLowerCase()];
      const header = headers[name] && this.#reader.resolve(headers[name]);
      if (sent === undefined) {
        if (header?.required) throw new Error(`${where}: the header ${name} is missing`);
        continue;
      }
      if (header === undefined) throw new Error(`${where}: the contract does not name the header ${name}`);
      const { schema = {} } = header;
      const problems = this.#reader.problems(schema, schema.type === 'integer' ? Number(sent) : sent);
      if (problems !== null) throw new Error(`${where}: ${name}: ${problems}`);
    }
  }
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
