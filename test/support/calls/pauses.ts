// What callers say, with the places where they may pause for breath or thought: `|` is such a
// place, the end of a line the end of the turn. First as recognisers without punctuation write it,
// then as those with it do, which end pieces with false full stops.

/** Places behind which the turn goes on, and turns that are over. */
const PLAIN = `
what time do you open
what time do you open | on sunday
when are you open
can you tell me the price
can you tell me | the price of a city bike
can you tell me the price | for two days
do you have | any tables for tonight
do you have any tables for tonight
how much does | a day cost
how much is it for a week
where can i park my car
where can i | leave my luggage
is there a garage | near your shop
could you please | call me back
could you please call me back tomorrow
are you open on christmas eve
what about sunday
what about | the sunday after
who do i have to talk to
i would like to | book a table
i would like to book | a table
i would like to book a table | for two people
i would like to book a table for two people tomorrow
i want to change | my address
i want to change my address
i need to talk to somebody about | my invoice
i need to talk to somebody about my invoice
my name is | peter miller
my name is peter miller
my number is | five five five | one two | three four
my number is five five five one two three four
it is the blue one
i am calling because | my order has not arrived
i am calling because my order has not arrived
i ordered a bike | and it came without a saddle
i ordered a bike last week
well | i am not sure
um | let me think
so | the thing is | that i lost the key
the key is in | the top drawer
i was wondering if | you could help me
i was wondering if you could help me
i live at | forty two elm street
forty two elm street
we will be there at | seven
we will be there at seven
with | my wife and my two children
it should be | next to the station
i have | another question
i have another question
this is the | second time i call
actually i think | i paid that already
i paid that already
on friday or | on saturday
the one with the | big wheels
i saw it on your | web page
i cannot find my | confirmation
no thank you
no thank you that is all
yes please
yes | but not today
that would be great
please send it to | my sister
please send it to my sister
we are four adults and | a baby
from the airport to | the hotel
from the airport to the hotel please
because | nobody told me
i would rather | come by train
it broke when | i tried to open it
thank you very much
goodbye`;

/** Written after the rules, which were not adapted to them. */
export const LATER = `
hi i am looking for | a hotel room
hi i am looking for a hotel room for next weekend
do you take | credit cards
do you take credit cards
is breakfast included
is breakfast included | in the price
how far is it | from the station
how far is it to the beach
i am allergic to | nuts
i am allergic to nuts and milk
my wife | would like the fish
could we sit | outside
could we sit outside if it does not rain
i lost my card | yesterday in the supermarket
i lost my card yesterday
can you block it | right now
can you block it right now
the last four digits are | nine two seven one
what do you mean by | insured
i do not understand | the bill you sent me
i do not understand the bill you sent me
it says here that | i owe you forty dollars
when will it | be delivered
when will it be delivered
we moved in | march
we moved in march last year
does the doctor have | time on monday
does the doctor have time on monday morning
i have had a headache | for three days
i have had a headache for three days
should i bring | anything
should i bring anything with me
it hurts when | i bend my knee
okay | and how long does that take
okay and how long does that take
wait | that is wrong
that is wrong
let me check | with my husband
let me check with my husband
fine i will take | the second one
fine i will take the second one
are there any | discounts for students
are there any discounts for students
i think it was | a tuesday
i think it was a tuesday
hello my name is anna | and i am calling about the flat
is the flat still available
how many rooms | does it have
how many rooms does it have
and the rent is | nine hundred
who can i speak to | about that
who can i speak to about that
no that does not help me
no | that does not help me
you told me | that last week
you told me that last week
would it be possible to | come on saturday
would it be possible to come on saturday
all right see you on friday
the address is | twelve park lane
sorry | can you say that again
sorry can you say that again`;

const PUNCTUATED = `
What time do you open?
What time do you open? | On Sunday.
I would like to | book a table.
I would like to book a table for two people.
My number is 555. | 1234.
My name is | Peter Miller.
Well, | I am not sure.
I am calling because | my order has not arrived.
The one with the | big wheels.
On Friday, | or on Saturday.
Is there a garage | near your shop?
I need to talk to somebody about | my invoice.
I cannot find my | confirmation.
Yes, | but not today.
No, thank you.
Can you tell me the price?
It should be | next to the station.
Please send it to | my sister.
That would be great.
Was kostet | ein Tag?
Können Sie mir | den Preis sagen?
Ich hätte gern | einen Tisch für zwei.
Ich hätte gern einen Tisch für zwei Personen.
Wo kann ich | mein Auto parken?
Quiero reservar | una mesa para dos.
¿A qué hora abren?
Je voudrais | une table pour deux.
À quelle heure ouvrez-vous ?`;

/** Milliseconds of silence where callers stop within a turn; half of such pauses are under 500. */
export const PAUSES_MS = [300, 400, 500, 600, 700, 800, 900, 1000, 1100] as const;

export interface PausedTurn {
  /** What was said before each place, from the beginning. */
  before: string[];
  whole: string;
}

export const turnsOf = (list: string): PausedTurn[] => list.trim().split("\n").map((line) => {
  const parts = line.split("|").map((part) => part.trim());
  return {
    before: parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join(" ")),
    whole: parts.join(" "),
  };
});

export const PAUSED_TURNS: readonly PausedTurn[] = [
  ...turnsOf(PLAIN), ...turnsOf(LATER), ...turnsOf(PUNCTUATED),
];
