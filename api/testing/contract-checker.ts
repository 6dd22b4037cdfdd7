import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Contract } from '../operations.js';
import { ContractReader, type Message } from './contract-reader.js';

/** Maximum length of the problems that are shown with the reply. */
const SHOWN = 4000;

/** A reply of `inject`, or a converted reply of a connection. */
type CheckedReply = Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'> & {
  json(): unknown;
};

const known = new WeakMap<Contract, ContractChecker>();

/**
 * Checks replies against the contract. The operation documents the status, and the body matches its schema. Of all
 * headers in the contract the reply has exactly those of its response.
 */
export class ContractChecker {
  private readonly reader: ContractReader;
  /** Names of all headers of any response. */
  private readonly headers: ReadonlySet<string>;

  /** Returns the checker of a contract: compiling its schemas takes long. */
  static forContract(contract: Contract): ContractChecker {
    const checker = known.get(contract) ?? new ContractChecker(contract);
    known.set(contract, checker);
    return checker;
  }

  private constructor(contract: Contract) {
    this.reader = new ContractReader(contract);
    const responses = this.reader.operations.flatMap(({ answers }) =>
      answers.map(([, response]) => response),
    );
    this.headers = new Set(responses.flatMap(({ headers = {} }) => Object.keys(headers)));
  }

  /** @throws Error that describes the violation; paths outside the contract are not checked */
  check({ method = 'GET', url }: InjectOptions, reply: CheckedReply): void {
    const path = String(url).split('?', 1)[0] ?? '';
    const { operations } = this.reader;
    const template = operations.find((candidate) => toPattern(candidate.path).test(path))?.path;
    const operation = operations.find(
      (candidate) => candidate.path === template && candidate.method === method.toUpperCase(),
    );
    if (operation === undefined) return;

    const where = `${method} ${template} → ${reply.statusCode}`;
    const [, response] = operation.answers.find(([status]) => status === String(reply.statusCode)) ?? [];
    if (response === undefined) throw new Error(`${where}: the contract does not document this status`);
    this.checkHeaders(where, response, reply);
    if (response.content === undefined) {
      if (reply.body !== '') throw new Error(`${where}: the contract documents no body`);
      return;
    }
    const mediaType = String(reply.headers['content-type']).split(';', 1)[0] ?? '';
    const content = response.content[mediaType];
    if (content === undefined)
      throw new Error(`${where}: the contract does not document the media type ${mediaType}`);
    if (content.schema === undefined || !/[/+]json$/.test(mediaType)) return;
    const problems = this.reader.problems(content.schema, reply.json());
    if (problems !== null) throw new Error(`${where}: ${problems}\n${reply.body}`.slice(0, SHOWN));
  }

  private checkHeaders(where: string, { headers = {} }: Message, reply: CheckedReply): void {
    for (const name of this.headers) {
      const sent = reply.headers[name.toLowerCase()];
      const header = headers[name] && this.reader.resolve(headers[name]);
      if (sent === undefined) {
        if (header?.required) throw new Error(`${where}: the header ${name} is missing`);
        continue;
      }
      if (header === undefined)
        throw new Error(`${where}: the contract does not document the header ${name}`);
      const { schema = {} } = header;
      // Node.js has a list of this one header, however many there are.
      for (const value of [sent].flat()) {
        const problems = this.reader.problems(schema, schema.type === 'integer' ? Number(value) : value);
        if (problems !== null) throw new Error(`${where}: ${name}: ${problems}`);
      }
    }
  }
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
