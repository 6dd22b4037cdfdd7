import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { Contract } from '../operations.js';

interface ResponseObject {
  $ref?: string;
  content?: Record<string, { schema?: object }>;
}

type PathItem = Record<string, { responses?: Record<string, ResponseObject> } | undefined>;

interface ContractDocument {
  paths: Record<string, PathItem>;
  components: { responses: Record<string, ResponseObject> };
}

/** As `inject` answers, or what is made of an answer over a connection. */
export type CheckedReply = Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'> & {
  json(): unknown;
};

const DOCUMENT_ID = 'openapi';

/** Checks replies against the contract: the status is one that the operation names, and the body fits its schema. */
export class ContractChecker {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #document: ContractDocument;

  constructor({ document }: Contract) {
    this.#document = document as unknown as ContractDocument;
    formats.default(this.#ajv);
    this.#ajv.addSchema(document as object, DOCUMENT_ID);
  }

  /** @throws Error that says what the contract does not have; paths outside the contract are not looked at */
  check({ method = 'GET', url }: InjectOptions, reply: CheckedReply): void {
    const path = String(url).split('?', 1)[0] ?? '';
    const template = Object.keys(this.#document.paths).find((candidate) => toPattern(candidate).test(path));
    const operation = template && this.#document.paths[template]?.[String(method).toLowerCase()];
    if (!operation || !template) return;

    const where = `${method} ${template} → ${reply.statusCode}`;
    const response = this.#resolve(operation.responses?.[String(reply.statusCode)]);
    if (response === undefined) throw new Error(`${where}: the contract does not name this status`);
    if (response.content === undefined) {
      if (reply.body !== '') throw new Error(`${where}: the contract names no body`);
      return;
    }
    const mediaType = String(reply.headers['content-type']).split(';', 1)[0] ?? '';
    const content = response.content[mediaType];
    if (content === undefined)
      throw new Error(`${where}: the contract does not name the media type ${mediaType}`);
    if (content.schema !== undefined && mediaType.endsWith('json'))
      this.#checkBody(where, content.schema, reply.json());
  }

  #checkBody(where: string, schema: object, body: unknown): void {
    const validate = this.#validator(schema);
    if (!validate(body))
      throw new Error(`${where}: ${this.#ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`);
  }

  #validator(schema: object): ValidateFunction {
    const text = JSON.stringify(schema);
    let validate = this.#validators.get(text);
    if (validate === undefined) {
      validate = this.#ajv.compile(JSON.parse(text.replaceAll('"#/', `"${DOCUMENT_ID}#/`)));
      this.#validators.set(text, validate);
    }
    return validate;
  }

  #resolve(response: ResponseObject | undefined): ResponseObject | undefined {
    const name = response?.$ref?.split('/').at(-1);
    return name === undefined ? response : this.#document.components.responses[name];
  }
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
