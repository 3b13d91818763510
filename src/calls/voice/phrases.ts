// The few sentences a call says of its own accord, when nobody has written them down.
import type { EndReason } from "../records.ts";

interface Phrases {
  stillThere: string;
  again: string;
  timeIsUp: string;
  leaving: string;
  sorry: string;
  notConnected: string;
}

const ENGLISH: Phrases = {
  stillThere: "Are you still there?",
  again: "I am sorry, I did not get that. Could you say it again?",
  timeIsUp: "I am sorry, our time is up. Goodbye.",
  leaving: "I am sorry, this call has to end now. Please call again later. Goodbye.",
  sorry: "I am sorry, something is not working. Please try again later. Goodbye.",
  notConnected: "I am sorry, I could not put you through. Is there anything else I can do?",
};

const BY_LANGUAGE: Record<string, Phrases> = {
  en: ENGLISH,
  de: {
    stillThere: "Sind Sie noch da?",
    again: "Entschuldigung, das habe ich nicht verstanden. Können Sie es noch einmal sagen?",
    timeIsUp: "Es tut mir leid, unsere Zeit ist um. Auf Wiederhören.",
    leaving: "Es tut mir leid, das Gespräch muss jetzt enden. Bitte rufen Sie später wieder an. Auf Wiederhören.",
    sorry: "Es tut mir leid, etwas funktioniert nicht. Bitte versuchen Sie es später noch einmal.",
    notConnected: "Es tut mir leid, ich konnte Sie nicht verbinden. Kann ich sonst etwas für Sie tun?",
  },
  es: {
    stillThere: "¿Sigue ahí?",
    again: "Perdone, no le he entendido. ¿Puede repetirlo?",
    timeIsUp: "Lo siento, se nos ha acabado el tiempo. Adiós.",
    leaving: "Lo siento, la llamada tiene que terminar ahora. Llame más tarde, por favor. Adiós.",
    sorry: "Lo siento, algo no funciona. Inténtelo más tarde. Adiós.",
    notConnected: "Lo siento, no he podido pasarle. ¿Puedo ayudarle en algo más?",
  },
  fr: {
    stillThere: "Êtes-vous toujours là ?",
    again: "Excusez-moi, je n'ai pas compris. Pouvez-vous répéter ?",
    timeIsUp: "Je suis désolé, notre temps est écoulé. Au revoir.",
    leaving: "Je suis désolé, cet appel doit se terminer. Rappelez plus tard, s'il vous plaît. Au revoir.",
    sorry: "Je suis désolé, quelque chose ne fonctionne pas. Réessayez plus tard. Au revoir.",
    notConnected: "Je suis désolé, je n'ai pas pu vous mettre en relation. Puis-je faire autre chose ?",
  },
};

/** The last words of a call that ends by itself. */
export const goodbyeOf = (language: string, reason: EndReason): string =>
  phrasesOf(language)[reason === "server_restarted" ? "leaving" : "timeIsUp"];

export const phrasesOf = (language: string): Phrases => BY_LANGUAGE[language] ?? ENGLISH;
